"""Input checks, compiled loops, randomness, files and threads: what every room above may use. Internal."""
