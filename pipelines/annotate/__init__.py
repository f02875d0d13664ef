"""What models say about posts and dialogues: verdicts, topics, chains."""
