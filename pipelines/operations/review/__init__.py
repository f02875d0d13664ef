"""People's part: tasks go out, labels come back, and what people agree on becomes rows (docs/reviewing.md)."""
