"""From what is required to the parameters that give it with the least error."""
