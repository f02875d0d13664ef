"""What is decided about a text by rules: its key, script, length, relevance, risk, the age of its writer."""
