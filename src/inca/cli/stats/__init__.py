"""Verbs of `inca stats`: statistics of a file of records, each from one private average."""
