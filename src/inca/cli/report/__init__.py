"""`inca report`: one page of a plan, a certificate, an execution, a result or a session, to be sent to people."""
