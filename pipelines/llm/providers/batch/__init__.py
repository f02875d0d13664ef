"""OpenAI's Batch API: many calls in a file, at a share of the price, within a day."""
