"""Everything that inca raises on purpose: one base, and one child for each thing that a caller may do about it.

Every message is one sentence for people: what must be, and what was. Which exit status the command line gives to which
error is a table of the command line's own (`inca.cli.app`).

    IncaError
    ├── InvalidInput            what was given cannot be used (also a ValueError)
    │   ├── OtherRoster             the others have another roster than this party
    │   └── MissingLibrary          a library of an extra is not installed (also an ImportError)
    ├── RequirementsNotMet      no plan meets what is required
    ├── BudgetExceeded          a release that the privacy budget no longer allows
    ├── NoResult                nobody was left to publish a result
    ├── WorkerLost              the workers that jobs need died, or cannot be reached
    ├── SingularView            observed messages too nearly dependent for double precision (also an ArithmeticError)
    └── NetworkError            something between parties went wrong
        ├── TemporaryFault          this machine cannot do it now: a port in use, or no memory
        ├── CannotJoin              this party cannot take part in the session
        ├── SequencePaused          a sequence of sessions cannot go on now, but can be started again
        ├── PeerUnreachable         a peer cannot be reached
        ├── InvalidPeerMessage      a message that no party following the protocol would send (also a ValueError)
        ├── LocalProtocolError      a call that the state of a party does not allow: a mistake of its own driver
        ├── TransportViolation      a peer that breaks the rules of the transport
        ├── JournalUnusable         the disk does not take or give back what it should
        └── CorruptJournal          records that contradict each other (also a ValueError)
"""

from __future__ import annotations

from typing import Any


class IncaError(Exception):
    """The base of all errors that inca raises on purpose."""


class InvalidInput(IncaError, ValueError):
    """Input that inca refuses: the sentence says what must be, and what was."""


class OtherRoster(InvalidInput):
    """A roster that is not that of the others; in a sequence, they know other outcomes."""


class MissingLibrary(InvalidInput, ImportError):
    """A library that only some parts of inca need, and that is not installed; the sentence says how to get it."""


class RequirementsNotMet(IncaError):
    """Requirements that no plan meets; the sentence says why, and what could be done."""


class BudgetExceeded(IncaError):
    """A release that the privacy budget no longer allows."""


class NoResult(IncaError):
    """A release after which nobody with a record was left to publish a result; its loss counts all the same."""


class WorkerLost(IncaError):
    """A worker process died, perhaps for want of memory, or a cluster has none left."""


class SingularView(IncaError, ArithmeticError):
    """Observed messages that are linearly dependent, or too nearly so for double precision."""


class NetworkError(IncaError):
    """Something between parties, or on a party's own disk, that keeps it from going on."""


class TemporaryFault(NetworkError):
    """Something that this machine cannot do now, and perhaps can when it is asked again: its port is in use."""


class CannotJoin(NetworkError):
    """The party cannot take part in the session; the sentence says why."""


class SequencePaused(NetworkError):
    """A sequence of sessions that cannot go on now, and can when it is started again."""


class PeerUnreachable(NetworkError):
    """A peer that cannot be reached; `cause` is a `FailureCause` of `inca.network.transport`."""

    def __init__(self, message: str, cause: Any) -> None:
        super().__init__(message)
        self.cause = cause


class InvalidPeerMessage(NetworkError, ValueError):
    """A message that no party following the protocol would send."""


class LocalProtocolError(NetworkError):
    """A call that the state of a party does not allow: a mistake of its own driver, and nothing has changed."""


class TransportViolation(NetworkError):
    """Something that an honest peer with this session and version does not do; `cause` as of `PeerUnreachable`."""

    def __init__(self, message: str, cause: Any) -> None:
        super().__init__(message)
        self.cause = cause


class JournalUnusable(NetworkError):
    """The disk does not take or give back what it should; the party must stop."""


class CorruptJournal(NetworkError, ValueError):
    """A record that contradicts the ledger: a damaged journal, or a mistake in this program."""
