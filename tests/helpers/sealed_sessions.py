"""Sessions on the simulated network in which everything goes wrong at the end, and an adversary that reads along.

One round and one coordinate, no coin flip; troubles begin when a party has sealed its balance. Parties refuse, are slow
with their deposits, die at their writes and come back, or die for good when they record commit. What must hold at any
time is checked at every write, and what must hold at the end of a session, at its end.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import combinations

import numpy as np
import pytest

from helpers.ledger_sums import Violation
from helpers.ledgers import with_topup
from helpers.network_faults import PERIOD, Faults
from helpers.simulated_network import SimulatedNetwork
from helpers.trustee_keys import in_common
from inca.network.lattice.discrete_gaussian import Keystream, discrete_gaussian
from inca.network.protocol.context import Effects
from inca.network.protocol.finalization import Finalization
from inca.network.protocol.messages import Item, Items, Message, Proposal
from inca.network.protocol.opening import cohort_keys, deposits, opening, shamir
from inca.network.protocol.opening.cohort_keys import COHORTS, CohortSecrets
from inca.network.protocol.opening.cohort_keys import public_of as public_of_curve
from inca.network.protocol.opening.cohort_keys import shared_secrets as shared_secrets_of_curve
from inca.network.protocol.opening.deposits import Dealing, Deposit
from inca.network.protocol.opening.trustees import trustees_of
from inca.network.protocol.party import Party
from inca.network.protocol.realized_execution import RealizedExecution
from inca.network.protocol.records import Decided, Erased, Record, Secret, Voted
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import Digest, Key, Sign, Verify, read
from inca.network.testing.expected_sum import weights_of
from inca.protocol.adversary import smallest_cohort

_CRASHING_PERIODS = 20.0  # from the start on
_LONGER_PERIODS = 4.0  # after the time at which a session should be over, for those who wait for others
_SLOW_PERIODS = (0.5, 4.0)  # that working out a loss takes the slow
_CALM_LOSS = 0.05  # of messages, with which nobody misses a decision
_MAX_STEPS = 50_000  # a session has some 500


@dataclass(frozen=True)
class Troubles:
    """What goes wrong from the last round on.

    Args:
        faults: Those of the network, and of the machines at every write.
        slow: The probability that a party takes longer than the patience of others to work out its loss.
        mortal: The probability that a party dies for good when it records commit.
        served: For how many seconds others are served at least.
        until_left_out: Whether the slow finish just when somebody votes to go on without them, if that is sooner.
    """

    faults: Faults
    slow: float = 0.0
    mortal: float = 0.0
    served: float = 0.0
    until_left_out: bool = False


DrawTroubles = Callable[[random.Random], Troubles]


def any_troubles(rng: random.Random) -> Troubles:
    """Draw all of them together, from mild to bad."""
    severity = rng.random()
    faults = Faults(
        loss=0.2 * severity * rng.random(),
        duplication=0.1 * rng.random(),
        delay=0.04 * rng.random() ** 2 * PERIOD,
        crash=0.15 * severity * rng.random(),
        comeback=rng.choice([1.0, 1.0, 0.7]),
        partitions=rng.choice([0, 0, 0, 1]),
        false_hints=rng.choice([0.0, 0.0, 0.02]),
        skew=rng.choice([0.0, 0.1]) * PERIOD,
        refusal=rng.choice([0.0, 0.0, 0.1, 0.2]),
    )
    return Troubles(
        faults, slow=rng.choice([0.0, 0.0, 0.15]), mortal=rng.choice([0.0, 0.0, 0.4]), served=rng.choice([0.0, 4.0])
    )


def smaller_cohorts(rng: random.Random) -> Troubles:
    """Draw troubles by which a cohort becomes smaller, often more than once."""
    faults = Faults(loss=0.05 * rng.random(), delay=0.03 * rng.random() * PERIOD, crash=0.03 * rng.random())
    return Troubles(replace(faults, refusal=0.1, comeback=1.0), slow=0.2)


def deaths_after_commit(rng: random.Random) -> Troubles:
    """Draw troubles by which keys are few, and come in another order to everyone."""
    return Troubles(Faults(loss=0.1 * rng.random(), delay=0.05 * rng.random() * PERIOD), mortal=0.4)


def close_calls(rng: random.Random) -> Troubles:
    """Draw troubles by which some vote for a smaller cohort just when the deposits come that it lacks."""
    faults = Faults(loss=0.1 * rng.random(), delay=rng.uniform(0.05, 0.15) * PERIOD)
    return Troubles(faults, slow=0.25, mortal=rng.choice([0.0, 0.3]), until_left_out=True)


def small_session(rng: random.Random) -> SessionConfig:
    """Draw a session of 3 to 7 parties, with one round and one coordinate."""
    session = SessionConfig(
        id=rng.randbytes(32),
        parties=rng.choice([3, 4, 5, 5, 6, 6, 7, 7]),
        rounds=1,
        schedule="permutation",
        dimension=1,
        largest_value=2**32,
        sigma_independent=4,
        sigma_cancelling=8,
        min_participants=3,
        start=6.0,
        period=PERIOD,
        seed=rng.randbytes(32),
    )
    return with_topup(session)


@lru_cache(maxsize=4096)
def keys_from(secrets: CohortSecrets) -> dict[bytes, bytes]:
    """Return the private keys that follow from a party's secrets, by their public ones."""
    private = [secrets.advanced(number).private_key for number in range(secrets.cohort, COHORTS)]
    return {cohort_keys.public_of(key): key for key in private}


@contextmanager
def remembered_curve() -> Iterator[None]:
    """Work out every product on the curve once, though many parties need it: most of the time goes there."""
    public_of = lru_cache(2**14)(public_of_curve)
    shared = lru_cache(2**14)(lambda private, *publics: shared_secrets_of_curve(private, publics))
    with pytest.MonkeyPatch.context() as patch:
        for module in (cohort_keys, deposits):
            patch.setattr(module, "public_of", public_of)
        for module in (cohort_keys, deposits, opening):
            patch.setattr(module, "shared_secrets", lambda private, publics: shared(private, *publics))
        keys_from.cache_clear()  # they may be those of other rules
        yield
        keys_from.cache_clear()


@dataclass
class Adversary:
    """What a colluder knows: everything that was ever sent, and its own keys, which it never erases.

    Args:
        session: The terms of the session.
        colluder: Who it is.
    """

    session: SessionConfig
    colluder: int
    keys: dict[bytes, bytes] = field(default_factory=dict)
    """The private keys that it knows, by public key."""
    deposits: dict[int, dict[int, list[Item]]] = field(default_factory=dict)
    """The deposits that were sent, by number of the cohort and by dealer."""
    dealings: list[Callable[[int], Dealing]] = field(default_factory=list)
    """How anyone deals for a cohort, by its number."""
    journals: dict[int, dict[bytes, bytes]] = field(default_factory=dict)
    """The private keys that are in the journals of others now, by party and public key."""
    heard: dict[int, int] = field(default_factory=dict)
    """Of how many cohorts each of them knows, by its journal."""
    unheard: set[int] = field(default_factory=set)
    """The cohorts that can be opened by the journals of those who never heard of a smaller one."""
    committed: int | None = None
    """The number of the cohort that was committed to."""
    _digests: dict[tuple[int, bytes], Digest] = field(default_factory=dict)
    _tried: set[tuple[bytes, bytes]] = field(default_factory=set)

    def overhear(self, item: Item) -> bool:
        """Read an item that somebody sends; return whether it is new."""
        match item.kind:
            case "key":
                private = read(item, Key).private
                new = len(private) == cohort_keys.KEY_BYTES and private not in self.keys.values()
                if new:
                    self.keys[cohort_keys.public_of(private)] = private
                return new
            case "digest":
                self._digests[item.party, item.hash] = read(item, Digest)
            case "deposit":
                known = self.deposits.setdefault(read(item, Deposit).cohort, {}).setdefault(item.party, [])
                if item not in known:
                    known.append(item)
                    return True
        return False

    def follow(self, decided: Proposal) -> None:
        """Learn what was decided next."""
        number = len(self.dealings)
        if decided.step == "commit":
            self.committed = number - 1
            return
        publics = {party: self._digests[party, hash_].keys[number] for party, hash_ in decided.contents}
        threshold = trustees_of(self.session, decided.parties).threshold
        self.dealings.append(lambda dealer: Dealing(self.session.id, number, decided.hash, dealer, publics, threshold))

    def opens(self, number: int, stolen: Iterable[int] = ()) -> bool:
        """Return whether it can open the deposits for a cohort, with these journals if it steals them now."""
        dealing, journals = self.dealings[number](0), [self.journals.get(party, {}) for party in stolen]
        known = sum(key in self.keys or any(key in held for held in journals) for key in dealing.trustees.values())
        return known >= dealing.threshold

    def check(self, *, steals: bool) -> None:
        """Refuse to have any two deposits of one party opened, or one that was not committed to."""
        numbers = sorted(n for n, dealt in self.deposits.items() if n < len(self.dealings) and self._others(dealt))
        for number in numbers:
            if number != self.committed and self.opens(number):
                raise Violation(f"deposits for cohort {number} can be opened, which is not committed to")
        if (later := self.committed) is None:
            return  # t - c journals and its own keys open any cohort, and those that may follow: but only one is opened
        for earlier in (number for number in numbers if number != later):
            if twice := self._others(self.deposits[earlier]) & self._others(self.deposits[later]):
                if steals and (stolen := self._theft(earlier)) is not None:
                    raise Violation(
                        f"two deposits of parties {sorted(twice)} can be opened, for cohorts {earlier} and {later}, "
                        f"with the journals of {stolen}"
                    )
                for dealer in twice:
                    self._check_secrets(self.deposits[earlier][dealer], self.deposits[later][dealer])

    def _others(self, parties: Iterable[int]) -> set[int]:
        return set(parties) - {self.colluder}

    def _theft(self, number: int) -> tuple[int, ...] | None:
        """Return which of at most t - c journals would open a cohort that was made smaller, if any do.

        Whoever has never heard of the smaller cohort cannot have erased anything, and there may be n - quorum of them,
        dead or cut off. In a cohort of five of six or seven parties that is t - c: journals of such parties alone are
        noted, and no violation.
        """
        colluders, size = self.session.colluders, len(self.dealings[number](0).trustees)
        spared = max(size // 2 + 1, colluders + 1) - colluders
        for stolen in combinations(sorted(self.journals), min(spared, len(self.journals))):
            if self.opens(number, stolen):
                if all(self.heard[party] <= number + 1 for party in stolen):
                    self.unheard.add(number)
                else:
                    return stolen
        return None

    def _check_secrets(self, earlier: list[Item], later: list[Item]) -> None:
        """Refuse that the secret of the later deposit, once it is known, opens the earlier one, too."""
        for before, after in ((before, after) for before in earlier for after in later):
            if (before.hash, after.hash) in self._tried or (secret := self.secret(after)) is None:
                continue
            self._tried.add((before.hash, after.hash))
            if self.message(before, secret) is not None:
                raise Violation(f"two deposits of party {before.party} have one secret")

    def secret(self, item: Item) -> bytes | None:
        """Return the secret from which a deposit was dealt, if enough keys are known."""
        deposit = read(item, Deposit)
        dealing = self.dealings[deposit.cohort](item.party)
        known = [place for place in dealing.trustees.items() if place[1] in self.keys][: dealing.threshold]
        if len(known) < dealing.threshold:
            return None
        places = {trustee: place for place, trustee in enumerate(dealing.trustees, start=1)}
        common = {party: in_common(deposit, self.keys[key]) for party, key in known}
        shares = {places[party]: dealing.share_of(deposit, party, key) or 0 for party, key in common.items()}
        return (shamir.recovered(shares) % 2**256).to_bytes(32, "little")

    def message(self, item: Item, secret: bytes | None) -> bytes | None:
        """Return what is in a deposit, by its secret; None if that is another one."""
        if secret is None:
            return None
        dealing = self.dealings[read(item, Deposit).cohort](item.party)
        message = dealing._padded(secret, item.sealed)
        return message if dealing.deal(secret, message) == (read(item, Deposit), item.sealed) else None


class SealedNetwork(SimulatedNetwork):
    """One session with a bad end. One party colludes with the adversary; if one lies, it is that one.

    Args:
        seed: Decides everything.
        liar: Makes the liar; by default the colluder keeps the rules, and all its keys.
        troubles: Draws what goes wrong.
        steals: Whether the adversary steals journals.
        answers_before_writing: As for every simulated network.
    """

    def __init__(
        self,
        seed: int,
        *,
        liar: type[Party] | None = None,
        troubles: DrawTroubles = any_troubles,
        steals: bool = True,
        answers_before_writing: bool = False,
    ) -> None:
        rng = random.Random(seed)
        session = small_session(rng)
        self.colluder, self.troubles = rng.randrange(session.parties), troubles(rng)
        self.adversary = Adversary(session, self.colluder)
        self.chain: list[Proposal] = []
        self._liar, self._steals = liar, steals
        self._slow = {i for i in range(session.parties) if rng.random() < self.troubles.slow}
        self._mortal = {i for i in range(session.parties) if rng.random() < self.troubles.mortal}
        self._acting, self._dying, self._news = -1, False, False
        self._working: list[Callable[[], None]] = []
        super().__init__(
            seed,
            session=session,
            faults=self.troubles.faults,
            make=self._party,
            answers_before_writing=answers_before_writing,
        )

    def _party(self, session: SessionConfig, me: int, sign: Sign, verify: Verify, rng: random.Random) -> Party:
        form = self._liar if self._liar is not None and me == self.colluder else Party
        return form(session, me, sign=sign, verify=verify, rng=rng, serve_s=self.troubles.served)

    # --- troubles -------------------------------------------------------------------------------------------------

    @property
    def faults(self) -> Faults:
        """How bad the network is for the party that acts: not before its balance is sealed."""
        if self._dying:
            return replace(self._faults, crash=1.0, comeback=0.0)
        if self._acting >= 0 and (party := self.machines[self._acting].party) and not party.ledger.sealed:
            return Faults()
        if self.now > self.session.start + _CRASHING_PERIODS * PERIOD:
            return replace(self._faults, crash=0.0)  # whoever waits for others would crash and come back without end
        return self._faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self._faults = faults

    def _perform(self, i: int, effects: Effects) -> None:
        self._acting = i
        self._dying = i in self._mortal and any(_is_commit(record) for record in effects.records)
        super()._perform(i, effects)
        self._acting, self._dying = -1, False
        if any(isinstance(record, Voted) and record.instance > 0 for record in effects.records):
            for work in self._working:
                self._at(self.now, work)
            self._working = []
        if effects.records:
            self._inspect(i, effects.records)
        if self._news:
            self._news = False
            self.adversary.check(steals=self._steals)

    def _assessed(self, i: int, incarnation: int, realized: RealizedExecution, refusal: str) -> None:
        work = partial(super()._assessed, i, incarnation, realized, refusal)
        if i not in self._slow or self.rng.random() >= 0.7:
            work()
        elif self.troubles.until_left_out:
            self._working.append(work)
            self._at(self.now + _SLOW_PERIODS[1] * PERIOD, work)
        else:
            self._at(self.now + self.rng.uniform(*_SLOW_PERIODS) * PERIOD, work)

    def _boot(self, i: int) -> None:
        super()._boot(i)
        if i == self.colluder:
            self.adversary.keys.update(keys_from(CohortSecrets(self.machines[i].sealings[0], 0)))

    # --- at every step --------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Ledgers are added up in other simulations."""

    def _post(self, i: int, j: int, message: Message) -> None:
        if isinstance(message, Items):
            for item in message.items:
                self._news |= self.adversary.overhear(item)
        super()._post(i, j, message)

    def _check_key(self, i: int, message: Message) -> None:
        if i != self.colluder or self._liar is None:
            super()._check_key(i, message)

    def _inspect(self, i: int, records: list[Record]) -> None:
        """Check what must hold after a write."""
        if not any(isinstance(record, Decided | Secret | Erased) for record in records):
            return
        journal = self.machines[i].journal
        decided = [record.decision.proposal for record in journal if isinstance(record, Decided)]
        for number, proposal in enumerate(decided):
            if number == len(self.chain):
                self.chain.append(proposal)
                self.adversary.follow(proposal)
            elif proposal.hash != self.chain[number].hash:
                raise Violation(f"two different decisions number {number}")
        if i != self.colluder:
            self.adversary.heard[i] = sum(proposal.step == "cohort" for proposal in decided)
            held = [record for record in journal if isinstance(record, Secret)]
            self.adversary.journals[i] = keys_from(CohortSecrets(held[0].state, held[0].cohort)) if held else {}
        self._news = True

    # --- at the end -----------------------------------------------------------------------------------------------

    def run(self, max_steps: int | None = None) -> None:
        """Process all events, and go on for a while if some wait for others: they may have come back late."""
        while self._queue and self.now <= self._latest_end(len(self.chain)) + _LONGER_PERIODS * PERIOD:
            self.step()
            if self.steps > (max_steps or _MAX_STEPS):
                raise Violation(f"the session goes on and on, after {self.steps} steps")

    @property
    def honest(self) -> dict[int, Party]:
        """The honest parties that are up at the end and have not left."""
        return {i: p for i, p in self.survivors.items() if i != self.colluder or self._liar is None}

    def outcome(self, i: int) -> tuple[object, ...] | None:
        """Return how the session ends for a party; None if it does not know."""
        party = self.honest[i]
        if (result := party.result) is not None:
            return "result", tuple(result.total.tolist()), result.weight, result.beacon, result.exact
        if party.finalization.lie is not None:
            return "lie", party.finalization.lie.party
        return ("none", party.reason) if self._finalization(i).opened else None

    def _finalization(self, i: int) -> Finalization:
        return self.honest[i].finalization

    def check_end(self) -> None:
        """Check how the session has ended."""
        late = {i: p.stage for i, p in self.honest.items() if not (p.finished or p.finalization.unfinished)}
        if late:
            raise Violation(f"the session hangs at {self.now:.1f} s: {late}")
        outcomes = {outcome for i in self.honest if (outcome := self.outcome(i)) is not None}
        if len(outcomes) > 1:
            raise Violation(f"different outcomes: {sorted(outcomes, key=repr)}")
        for outcome in outcomes:
            self._check_outcome(outcome)
        self._check_stayed()

    def _check_outcome(self, outcome: tuple[object, ...]) -> None:
        if outcome[0] == "none":
            raise Violation(f"the deposits were opened in vain: {outcome[1]}")
        if outcome[0] == "lie":
            if self._liar is None or outcome[1] != self.colluder:
                raise Violation(f"honest party {outcome[1]} is named as a liar")
            return
        cohort = self.chain[-2].parties
        if (outcome[1], outcome[2]) not in self._expected(cohort):
            raise Violation("the result is not the sum of what the cohort has injected and topped up")
        if not outcome[4]:
            raise Violation("accounts of honest parties contradict each other")

    def _expected(self, cohort: Iterable[int]) -> list[tuple[tuple[int, ...], int]]:
        """Return what the final messages of a cohort may add up to: a liar's may be larger by one."""
        number, members = len(self.chain) - 2, sorted(cohort)
        sigma = self.session.sigma_topup(weights_of(self.session, [self.machines[i].ledgers[-1] for i in members]))
        total = np.zeros(self.session.dimension + 1, dtype=np.int64)
        for i in members:
            machine = self.machines[i]
            total += machine.ledgers[-1].injected
            if sigma:
                stream = Keystream(CohortSecrets(machine.sealings[0], 0).advanced(number).topup, b"topup")
                total[:-1] += discrete_gaussian(sigma, self.session.dimension, stream)
        more = [0, 1] if self._liar is not None and self.colluder in members else [0]
        return [(tuple((total[:-1] + plus).tolist()), int(total[-1])) for plus in more]

    def _check_stayed(self) -> None:
        """Check that the session has an outcome if enough have stayed: before commit, and after it."""
        calm = not self._faults.partitions and not self._faults.false_hints and self._faults.loss <= _CALM_LOSS
        steady = {i for i in self.honest if self.machines[i].boots == 1} if calm else set[int]()
        running = {i for i, party in self.honest.items() if not party.finished}
        enough, without = len(steady) >= self.session.quorum, {i for i in self.honest if self.outcome(i) is None}
        if self.adversary.committed is None:
            willing = {i for i in steady - self._slow if not _has_refused(self.honest[i])}
            if enough and len(willing) >= max(self.session.min_participants, smallest_cohort(self.session.colluders)):
                raise Violation(f"parties {sorted(willing)} have stayed, and nothing is committed to")
            return
        dealing = self.adversary.dealings[-1](0)
        keep = {i for i in dealing.trustees if not any(isinstance(r, Erased) for r in self.machines[i].journal)}
        holds = any(self.honest[i].ledger.committed and not self._finalization(i).lacking for i in running)
        if len(running & keep) >= dealing.threshold and (holds or len(running) >= self.session.quorum):
            stuck = running & without
        elif enough and len(steady & keep) >= dealing.threshold:
            stuck = steady & without
        else:
            stuck = set()
        if stuck:
            raise Violation(f"enough have stayed, and parties {sorted(stuck)} have no outcome")


def _is_commit(record: Record) -> bool:
    return isinstance(record, Decided) and record.decision.proposal.step == "commit"


def _has_refused(party: Party) -> bool:
    return any(kind == "refusal" for kind, _ in party.ledger.own_items)
