"""A model of the rules of sealed final messages: random schedules of the real state machines, with a bad end.

Sessions of 3 to 7 parties: crashes and restarts at every write, deaths for good at commit, loss, duplication,
reordering, cuts of the network, refusals, parties that are slow with their deposits, and one colluder, in ten of eleven
sessions a lying dealer or trustee (`broken_parties`). At every write, and every message with a key or a deposit:

- there is one chain of decisions;
- nobody honest sends a key that is not behind a commit decision in its journal;
- an adversary with all messages ever sent and the colluder's keys opens nothing that is not committed to; and with
  t - c journals as they are now besides, never two deposits of one honest party (but see `_theft`).

At the end all who have an outcome have the same one, the exact result of everybody committed or the liar's name; nobody
honest is named; and there is an outcome if enough have stayed (`SealedNetwork.check_end`).

Quick: 44 sessions by the rules, and ten broken rules, which are caught within 3, 20 or 40 sessions. Slow: 2,000
sessions by the rules, and three more broken rules, which are caught within 50 or 100 sessions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from helpers import broken_parties as broken
from helpers.broken_parties import DEALERS, TRUSTEES, Liar
from helpers.ledger_sums import Violation
from helpers.network_faults import Faults
from helpers.sealed_sessions import (
    DrawTroubles,
    SealedNetwork,
    Troubles,
    any_troubles,
    close_calls,
    deaths_after_commit,
    remembered_curve,
    smaller_cohorts,
)

LIARS: tuple[type[Liar] | None, ...] = (None, *DEALERS, *TRUSTEES)
QUICK, CHUNK, CHUNKS = len(LIARS), 125, 4  # sessions of each kind of troubles, by the rules


@pytest.fixture(autouse=True)
def curve() -> Iterator[None]:
    with remembered_curve():
        yield


# --- the rules --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "seeds",
    [
        range(QUICK),
        *(
            pytest.param(range(QUICK + i * CHUNK, QUICK + (i + 1) * CHUNK), marks=pytest.mark.slow)
            for i in range(CHUNKS)
        ),
    ],
)
@pytest.mark.parametrize("troubles", [any_troubles, smaller_cohorts, deaths_after_commit, close_calls])
def test_whoever_keeps_the_rules_comes_to_one_end(troubles: DrawTroubles, seeds: range) -> None:
    """44 sessions, and 2,000 in the slow suite; where too few stay, or too few agree, there is no outcome."""
    ends = []
    for seed in seeds:
        network = SealedNetwork(seed, liar=LIARS[seed % len(LIARS)], troubles=troubles)
        network.run()
        network.check_end()
        ends += [outcome[0] for i in network.honest if (outcome := network.outcome(i)) is not None][:1]
    assert "result" in ends and len(ends) > len(seeds) / 4


@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 6), marks=pytest.mark.slow)])
@pytest.mark.parametrize("liar", LIARS)
def test_on_a_good_network_every_session_has_an_outcome_and_only_who_deals_a_lie_is_named(
    liar: type[Liar] | None, seeds: range
) -> None:
    for seed in seeds:
        network = SealedNetwork(seed, liar=liar, troubles=lambda rng: Troubles(Faults(delay=0.001)))
        network.run()
        network.check_end()
        outcomes = {network.outcome(i) for i in network.honest}
        if liar in (broken.GarbageDealer, broken.WrongSharesDealer, broken.UndecipherableDealer):
            assert outcomes == {("lie", network.colluder)}
        elif network.session.parties > 3:
            (outcome,) = outcomes
            assert outcome is not None and outcome[0] == "result"


def test_the_adversary_opens_what_was_committed_to_as_the_parties_do() -> None:
    """So it is not blind: were it to have the keys of another cohort, it would open that."""
    network = SealedNetwork(2, troubles=lambda rng: Troubles(Faults(delay=0.001, refusal=0.2)))
    network.run()
    adversary, result = network.adversary, next(iter(network.results.values()))
    assert adversary.committed is not None
    items = [item for dealt in adversary.deposits[adversary.committed].values() for item in dealt]
    messages = [adversary.message(item, adversary.secret(item)) for item in items]
    assert all(messages) and len(messages) == len(result.realized.cohort)
    payloads = [np.frombuffer(message[:-32], dtype="<i8") for message in messages if message]
    assert np.sum(payloads, axis=0).tolist() == [*result.total, result.weight]


# --- broken rules -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BrokenRule:
    """A rule, and how it is seen that it is broken.

    Args:
        breaks: Breaks the rule; None if the network does.
        seen: What is seen, as a regular expression.
        within: Within how many sessions.
        troubles: What goes wrong in them.
        liar: Who lies.
        steals: Whether the adversary steals journals: without that, it is seen for no other reason.
        slow: Whether it takes long.
    """

    breaks: Callable[[pytest.MonkeyPatch], None] | None
    seen: str
    within: int = 3
    troubles: DrawTroubles = any_troubles
    liar: type[Liar] | None = None
    steals: bool = True
    slow: bool = False

    @property
    def name(self) -> str:
        return self.breaks.__name__ if self.breaks else "sent_before_durable"


STUCK = "enough have stayed, and parties .* have no outcome"
TWICE = "can be opened, which is not committed to"
EARLY = "shows a key before anything was committed to"
RULES = [
    BrokenRule(broken.colluders_are_enough, TWICE),
    BrokenRule(broken.words_on_any_cohort, "honest party . is named", 20, smaller_cohorts),
    BrokenRule(broken.one_key, TWICE, 20, smaller_cohorts, steals=False),
    BrokenRule(broken.one_secret, "have one secret", 20, smaller_cohorts, steals=False),
    BrokenRule(broken.silence_is_a_lie, "honest party . is named", 40, deaths_after_commit),
    BrokenRule(broken.keys_with_deposits, EARLY),
    BrokenRule(broken.bytes_come_later, STUCK, 50, deaths_after_commit, broken.DealerWithoutBytes, slow=True),
    BrokenRule(broken.erases_when_it_votes, STUCK, 40, close_calls),
    BrokenRule(broken.valid_by_hash_alone, "different|in vain", 20, deaths_after_commit, broken.WrongSharesDealer),
    BrokenRule(broken.garbage_is_missing, STUCK, 50, deaths_after_commit, broken.UndecipherableDealer, slow=True),
    BrokenRule(None, EARLY, 100, slow=True),
    BrokenRule(broken.accepts_what_it_lacks, STUCK, 20, any_troubles, broken.HidingDealer),
    BrokenRule(broken.never_erases, "two deposits of parties .* can be opened", 20, smaller_cohorts),
]


def first_violation(rule: BrokenRule) -> str:
    """Return what is seen first of a broken rule; nothing if it is not seen within its number of sessions."""
    for seed in range(rule.within):
        network = SealedNetwork(
            seed,
            liar=rule.liar,
            troubles=rule.troubles,
            steals=rule.steals,
            answers_before_writing=rule.breaks is None,
        )
        try:
            network.run()
            network.check_end()
        except Violation as violation:
            return str(violation)
    return ""


@pytest.mark.parametrize(
    "rule", [pytest.param(rule, id=rule.name, marks=[pytest.mark.slow] if rule.slow else []) for rule in RULES]
)
def test_a_broken_rule_is_seen(rule: BrokenRule, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within 3 to 40 sessions in the quick suite, within 50 to 100 in the slow one, as `RULES` says of each."""
    if rule.breaks is not None:
        rule.breaks(monkeypatch)
    assert re.search(rule.seen, first_violation(rule))
