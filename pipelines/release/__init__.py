"""What leaves the house: prompt sets for training."""
