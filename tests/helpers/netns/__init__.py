"""Networks of their own for tests: sites behind NAT and firewalls, and what is public between them."""
