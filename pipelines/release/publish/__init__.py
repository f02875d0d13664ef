"""How a release leaves the home: folders, JSONL, the Hub, its card."""
