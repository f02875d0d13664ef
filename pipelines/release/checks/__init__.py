"""What is asked of a release before it is made."""
