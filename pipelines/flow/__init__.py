"""The list of the stages, and how a refresh runs them."""
