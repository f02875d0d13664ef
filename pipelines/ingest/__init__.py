"""Readers of public data sets: `importing.read` reads one, `registry.READERS` says which there are.

A reader is a generator from the text of a file to posts, dialogues, or `Broken` records. All that the sets have in
common (opening files, encodings, joining turns, ids, duplicates, frames, accounts) is done once, around it.
"""
