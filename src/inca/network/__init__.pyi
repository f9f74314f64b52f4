# The public names of inca.network, listed once: type checkers read this file, and so does the package itself, which
# loads a name when it is first used.
from .addresses import Address as Address
from .membership.identity import Card as Card
from .membership.identity import Identity as Identity
from .membership.identity import read_card as read_card
from .membership.roster import Roster as Roster
from .membership.roster import read_roster as read_roster
from .membership.terms import Terms as Terms
from .node.runner import run_party as run_party
from .node.session_setup import SessionSetup as SessionSetup
from .node.transport_setup import NetworkAccess as NetworkAccess
from .preflight.doctor import Diagnosis as Diagnosis
from .preflight.doctor import examine as examine
from .sequence.session_sequence import SessionOutcome as SessionOutcome
from .sequence.session_sequence import SessionSequence as SessionSequence
from .testing.local_cluster import LocalCluster as LocalCluster

__all__: list[str]
