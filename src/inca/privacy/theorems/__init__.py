"""The conditions of Theorems 2 to 6, how likely they fail, and the least noise that meets them."""
