"""A party at work: the protocol, the transport and the roster joined, with a journal on disk."""
