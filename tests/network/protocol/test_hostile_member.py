"""A member that lies in every message: it cannot crash, split, stall or fill the memory of honest parties."""

from __future__ import annotations

import tracemalloc
from itertools import zip_longest
from typing import get_args

import msgspec
import pytest

from helpers.hostile_member import HostileNetwork, HostileParty, Make
from helpers.network_faults import Faults
from helpers.parties import PACED, Room
from helpers.splitting_member import SplittingParty
from inca.network.protocol.agreement.ballot_signatures import BallotSignatures
from inca.network.protocol.messages import (
    Accept,
    Account,
    Decision,
    Decisions,
    Fetch,
    Item,
    Items,
    Lock,
    Message,
    Nudge,
    Offer,
    OfferProof,
    Proposal,
    Propose,
    Seen,
    Vote,
    encode,
)
from inca.network.protocol.opening.cohort_keys import COHORTS
from inca.network.protocol.party import Party
from inca.network.protocol.records import Accepted, Promised, Voted
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import KINDS, PER_COHORT, Digest

FIRST, CHUNK = 4, 20  # sessions of the quick tests, and of the slow ones
IMPOSSIBLE = "someone has lied, and nobody can tell who"
CALM = Faults(delay=0.01)
ROUGH = Faults(delay=0.02, loss=0.05, duplication=0.1, crash=0.003, comeback=0.7, skew=0.1, false_hints=0.01)


def bounded(party: Party) -> None:
    """What a party keeps is bounded by the numbers of parties, rounds and cohorts, whatever it is sent."""
    session, items, components = party.session, party.signed_items, party
    n, transfers, consensus = session.parties, components.transfers, components.consensus
    offers = session.rounds * n
    assert len(transfers._early) <= offers and len(transfers._skipped) <= session.rounds * n
    # Two variants of each item, and what the last proposal of each party, a decision or an acceptance names.
    assert all(len(variants) <= 2 + 2 * n for variants in items._variants.values())
    assert len(items._variants) <= len(KINDS) * n and len(items._early) <= len(PER_COHORT) * n
    assert sum(len(named) for named in items._named.values()) <= (n + 1) * n
    assert len(items._kept) <= 20 * n * n
    large = [item for variants in items._variants.values() for item in variants.values()] + [*items._early.values()]
    assert all(item.size <= 2**14 for item in large)
    anti_entropy, words = components.anti_entropy, len(KINDS) + 2
    assert len(anti_entropy._asked) <= words * n and len(anti_entropy._in_vain) <= words * n
    assert all(len(sent) <= len(KINDS) * n * (2 + 2 * n) for sent in anti_entropy._sent.values())
    assert len(anti_entropy._claims) <= n and len(anti_entropy._passed_on) <= words * (COHORTS + 1)
    for by_peer in (
        consensus._followed,
        consensus._first_ballots,
        consensus._told,
        consensus._promised,
        consensus._promises,
    ):
        assert len(by_peer) <= n
    assert len(consensus._signatures._valid) <= 8 * n
    finalization = components.finalization
    assert len(finalization._realized) <= 2 * COHORTS + 2 and len(finalization._refusals) <= 2 * COHORTS + 2
    assert len(party.ledger.decided) <= COHORTS + 1


def run(seed: int, faults: Faults, hostile: Make = HostileParty) -> HostileNetwork:
    """Run a session with a hostile member; whatever goes wrong in an honest party names the seed."""
    network = HostileNetwork(seed, faults, hostile)
    try:
        network.run()
        for i, party in network.honest.items():
            bounded(party)
            written = [record for record in network.journal(i) if isinstance(record, Promised | Voted | Accepted)]
            assert len(written) <= 60 * network.session.parties, f"{len(written)} records of the consensus"
        agreed(network)
    except Exception as error:
        raise AssertionError(f"seed {seed}: {type(error).__name__}: {error}") from error
    return network


def agreed(network: HostileNetwork) -> None:
    """Honest parties know the same decisions and hold the same result."""
    chains = [[decision.proposal.hash for decision in ledger.decided] for _, ledger in network.honest_ledgers()]
    for number, hashes in enumerate(zip_longest(*chains)):
        assert len(set(hashes) - {None}) == 1, f"two decisions of number {number}"
    results = [party.result for party in network.honest.values() if party.result is not None]
    told = {(tuple(result.total.tolist()), result.weight, result.beacon, result.exact) for result in results}
    assert len(told) <= 1, f"{len(told)} different results"
    lies = {party.finalization.lie.party for party in network.honest.values() if party.finalization.lie is not None}
    assert lies <= {network.hostile} and not (lies and results), f"{lies} have lied, and there are {len(told)} results"


def ends(network: HostileNetwork) -> str:
    """Every honest party knows the outcome, the same for all; and nobody honest was left out of a cohort."""
    ends = {
        "result"
        if party.result
        else "lie"
        if party.finalization.lie
        else "impossible"
        if IMPOSSIBLE in party.reason
        else party.reason
        for party in network.honest.values()
    }
    assert len(ends) == 1 and ends <= {"result", "lie", "impossible"}, f"they end with {ends}"
    cohorts = [party.ledger.cohort for party in network.honest.values()]
    assert all(cohort is not None and network.honest.keys() <= cohort.parties for cohort in cohorts)
    return ends.pop()


@pytest.mark.parametrize(
    "seeds",
    [
        range(FIRST),
        *(pytest.param(range(first, first + CHUNK), marks=pytest.mark.slow) for first in range(0, 1000, CHUNK)),
    ],
)
def test_a_session_with_one_liar_and_no_other_fault_has_an_outcome(seeds: range) -> None:
    """One result of everybody who was committed; or the liar's name; or no result, as the total is impossible."""
    for seed in seeds:
        network = run(seed, CALM)
        try:
            ends(network)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


@pytest.mark.parametrize(
    "seeds", [range(CHUNK, CHUNK + FIRST), pytest.param(range(CHUNK + FIRST, 2 * CHUNK), marks=pytest.mark.slow)]
)
def test_honest_parties_agree_on_a_bad_network(seeds: range) -> None:
    results = [bool(run(seed, ROUGH).results) for seed in seeds]
    assert any(results)


def split(faults: Faults, seeds: range) -> int:
    """Let a member try to get two decisions of one number; return how many decisions of its own it got, or locks."""
    own = 0
    for seed in seeds:
        network = run(seed, faults, SplittingParty)
        party = network.machines[network.hostile].party
        own += party.locked + party.decided if isinstance(party, SplittingParty) else 0
    return own


@pytest.mark.parametrize(
    ("delay", "seeds"),
    [
        (0.02, range(2 * FIRST)),
        *(pytest.param(delay, range(300), marks=pytest.mark.slow) for delay in (0.002, 0.02, 0.05, 0.1)),
    ],
)
def test_a_proposer_that_ignores_what_was_accepted_splits_nobody(delay: float, seeds: range) -> None:
    """It gets proposals of its own through, where nothing else was decided: so it is no straw man."""
    assert split(Faults(delay=delay), seeds) > 0


@pytest.mark.parametrize(
    ("rule", "seeds"),
    [
        ("a quorum is a majority", range(140, 148)),  # 141, 144 and 146 do
        ("proposals need no promises", range(34, 38)),  # 36 does
    ],
)
def test_without_a_rule_it_splits_sessions(rule: str, seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    if rule == "a quorum is a majority":
        monkeypatch.setattr(SessionConfig, "quorum", property(lambda session: session.parties // 2 + 1))
    else:
        monkeypatch.setattr(BallotSignatures, "check_justified", lambda self, message: False)
    with pytest.raises(AssertionError, match=r"two decisions of number|does not follow what was decided"):
        split(Faults(delay=0.02), seeds)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 1100, 100))
def test_honest_parties_agree_in_many_sessions(first: int) -> None:
    for seed in range(first, first + 100):
        run(seed, ROUGH)


def test_the_hostile_member_says_all_kinds_of_things() -> None:
    said: set[str] = set()
    for seed in range(40):
        if len(said) == len(get_args(Message)):
            break
        network = HostileNetwork(seed, CALM)
        while network._queue and network.steps < 5000 and len(said) < len(get_args(Message)):
            network.step()
            party = network.machines[network.hostile].party
            if isinstance(party, HostileParty):
                said |= {type(message).__name__ for message in party.told[-50:]}
                party.told.clear()
    assert said == {kind.__name__ for kind in get_args(Message)}


LARGEST = 2**32 - 1
NOBODY = [(LARGEST, bytes(32))]
STRANGE = Proposal("cohort", NOBODY)
LARGE_NUMBERS: tuple[Message, ...] = (
    Items([Item("digest", LARGEST, b"", bytes(64))]),
    Items([Item("no kind", LARGEST, b"", bytes(64))]),
    Items([Item("digest", 1, msgspec.msgpack.encode(Digest(Account([LARGEST], [LARGEST], []), bytes(32), [])), b"")]),
    Fetch("digest", NOBODY),
    Propose(0, 2**62 - 1, STRANGE, [(LARGEST, 2**62 - 1, bytes(64))], NOBODY),
    Accept(0, Lock(2**62 - 1, STRANGE, NOBODY)),
    Decisions(0, [Decision(2**62 - 1, STRANGE, NOBODY)]),
    Decisions(LARGEST, []),
    Vote(LARGEST, 2**62 - 1, bytes(64)),
    Offer(LARGEST, b""),
    Nudge(LARGEST),
    Seen([OfferProof(LARGEST, b"", b"", b"")], LARGEST, LARGEST, []),
)


@pytest.mark.parametrize("stage", ["rounds", "digests", "serving"])
def test_a_large_number_in_a_short_message_costs_little(stage: str) -> None:
    """A number of four bytes that is taken for a party's, and shifted by, would be 512 MiB."""
    room = Room(PACED).open().at_stage(2, stage)
    for message in LARGE_NUMBERS:
        tracemalloc.start()
        try:
            room.parties[2].receive(room.now, 0, message)
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert len(encode(message)) < 500 and most < 200_000, f"{most} bytes for {message}"
