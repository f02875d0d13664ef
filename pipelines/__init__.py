"""The pipeline: from raw posts and dialogues to data that trains (DESIGN §1)."""
