"""Evaluation as the papers do it: figures over answers, over people's rankings, over a reward model's verdicts."""
