"""The right to be forgotten: rows, and all that was made from them, leave every place of a home (docs/erasing.md)."""
