"""Pure functions from a page to records: no input, no output, no clock."""
