"""The protocol of a real party as a pure state machine: no socket, no file, no clock."""
