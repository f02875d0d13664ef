"""The report of a home: one page of what came, what became of it, who and what worked on it, and what it is for."""
