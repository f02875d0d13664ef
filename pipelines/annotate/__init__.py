"""What models, or the rules that stand in for one, say about posts and dialogues: verdicts, topics, chains."""
