"""What the parties of a session agree on, and how: the agenda, and a consensus that no single member can split."""
