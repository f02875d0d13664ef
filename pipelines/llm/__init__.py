"""What a model is asked: prompt files."""
