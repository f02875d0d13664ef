"""The annotator `rules-v1`: lexicons and rules instead of a model. Inspectable, deterministic, a baseline.

What it says of a post is in the post: a feeling is a word of a lexicon, a cause a clause behind a connective, an intent
the form of a question, and each is quoted as it stands. `answers.ANSWERS` has a reply to every task; this package is
light, the rest is imported from there.
"""
