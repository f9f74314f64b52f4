"""What documents say, in words: one verdict, one content, and renderers for terminals, pages and the dashboard.

A document is worded here and nowhere else. Nothing is accounted or drawn at random here: who calls has certified.
"""
