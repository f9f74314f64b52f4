"""`inca learn`: statistics and models made of private averages, one file per verb."""
