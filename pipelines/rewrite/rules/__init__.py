"""What `rules-v1` answers where dialogues are profiled, rewritten and judged: lexicons and exchange tables."""
