"""Statistics with intervals, each from one private average."""
