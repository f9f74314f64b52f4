"""Models trained by private averages."""
