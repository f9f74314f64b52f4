"""Independent pieces of work, on one machine or on a cluster, whose finished part is kept in a file."""
