"""What a user wants, and the parameters that give it at the least error."""
