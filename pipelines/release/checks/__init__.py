"""The checks of a release before it is made."""
