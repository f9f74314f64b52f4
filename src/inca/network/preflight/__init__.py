"""The checks of `inca node doctor` before a session.

doctor -> peer_checks -> advice -> checks
"""
