"""Several sessions in sequence, with one budget."""
