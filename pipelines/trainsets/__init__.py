"""Sets that train: prompts for GRPO, warm starts, rows for reward models."""
