"""What leaves the house: prompt sets and training sets, checked, pinned and written as releases."""
