"""Training with verl: recipes, their configuration, and how a run is started, followed and resumed."""
