"""A party at work: the protocol, the transport and the membership joined, with a journal on disk.

runner -> node -> journal, event_log, clock_check, loss_check, transport_setup -> session_setup, session_clock
runner -> report
"""
