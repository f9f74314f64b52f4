"""Nothing that is printed shows private data: no `repr`, `str` or format of any class of the package, and no refusal.

What holds values, noise or secrets shows shapes and sizes. A new class with a field that is named like private data
must be made here, or be explained in `PUBLIC`.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import importlib
import inspect
import pkgutil
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import pytest

import inca
from helpers.ledger_sums import Machine
from helpers.parties import PACED, START, Room
from helpers.rosters import terms
from helpers.signatures import sign, verify
from inca._base.types import Array
from inca.cli.input_files import ValueTable
from inca.cli.printing import OutputFiles
from inca.cli.stats.records_file import read_parties
from inca.cli.stats.release import PreparedRelease
from inca.dashboard.documents import OpenedFile
from inca.dashboard.kept_documents import KeptDocument, KeptDocuments
from inca.dashboard.shown_run import ShownRun, SimulatedData
from inca.dashboard.simulated_run import SimulatedRun
from inca.learn.averagers.base import RemoteRecords
from inca.learn.averagers.simulated import SimulatedAverager
from inca.learn.budget import Budget
from inca.learn.comparison.datasets import Dataset
from inca.learn.comparison.trials import _DividedData
from inca.learn.statistics.records import Records
from inca.learn.training.logistic import PrivateLogisticRegression
from inca.network.lattice.discrete_gaussian import Keystream
from inca.network.membership.identity import Identity, read_card
from inca.network.membership.roster import Roster, read_roster
from inca.network.node.payload_files import PayloadFile
from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.context import Effects, PartyContext
from inca.network.protocol.ledger import Ledger
from inca.network.protocol.messages import Account, Item, Items, Offer, pack
from inca.network.protocol.opening.cohort_keys import CohortSecrets, public_of
from inca.network.protocol.opening.deposits import Deposit
from inca.network.protocol.opening.opening import OpenedDeposits
from inca.network.protocol.party import Party
from inca.network.protocol.records import Began, Credited, Opened, Secret, Signed
from inca.network.protocol.signed_items import Digest, Key
from inca.network.testing.local_cluster import LocalCluster
from inca.privacy.attack import Reconstruction
from inca.protocol.dissemination import Dissemination, exact
from inca.protocol.noise import Noise
from inca.protocol.simulation import Outcome
from inca.reporting.parts import Content

NUMBER, STEPS = 0.123456789, 123456789 * 10**6
DIGITS = re.compile(r"1\.?23456")  # of which NumPy shows eight, with powers of ten or without
SECRET = b"private bytes!!!private bytes!!!"
SPELLINGS = {SECRET.decode()[:13], SECRET.hex()[:20], base64.b64encode(SECRET).decode()[:12]}
ADDRESS = re.compile(r"0x[0-9a-f]+")  # where an object is in memory

VALUES: Array = np.full(PACED.parties, NUMBER)
ITEM = Item("key", 1, SECRET, b"signature", SECRET)
NOISE = Noise(VALUES, np.full((5, 4), NUMBER))
EXECUTION = inca.Execution(inca.RandomReceivers(5, rounds=4, seed=1), inca.incremental_injection(4))
DATASET = Dataset("digits", np.full((3, 2), NUMBER), np.full(3, NUMBER), 0)


def opened_ledger() -> Ledger:
    ledger = Ledger(PACED, 0)
    ledger.apply(OPENED)
    return ledger


def opened_party() -> Party:
    party = Party(PACED, 0, sign=sign(0), verify=verify, rng=random.Random(1))
    party.open(0.0, np.full(PACED.dimension, STEPS, dtype=np.int64), SECRET, SECRET, SECRET)
    return party


def running_party() -> Party:
    """Return a party in its second round, with masks and balances of its own; its value is another."""
    return Room(PACED).open().run(until=START + 0.5).parties[2]


def shown_run() -> ShownRun:
    simulated = ShownRun.simulated(SimulatedRun(parties=5, rounds=4))
    return ShownRun(simulated.transcript, SimulatedData(VALUES, NOISE))


def documents() -> KeptDocuments:
    opened = KeptDocuments()
    opened._kept["0"] = kept_document()
    return opened


def shown_file() -> OpenedFile:
    return OpenedFile("0", "run.json", "an execution", Content(f"{NUMBER}"), run=shown_run())


def kept_document() -> KeptDocument:
    return KeptDocument(shown_file(), 3)


OPENED = Opened(pack(np.full(PACED.dimension, STEPS, dtype=np.int64)), SECRET, SECRET)
OFFER = Offer(2, SECRET)
OUTCOME = Outcome(EXECUTION, VALUES, np.full((5, 5), NUMBER))

HOLDERS: dict[type, Callable[[], object]] = {
    Noise: lambda: NOISE,
    Outcome: lambda: OUTCOME,
    Dissemination: lambda: dataclasses.replace(exact(OUTCOME), estimates=np.zeros(5)),  # these are public
    Reconstruction: lambda: Reconstruction(VALUES, VALUES),
    ValueTable: lambda: ValueTable(VALUES, ("minutes",)),
    Records: lambda: Records.of([[NUMBER, NUMBER], [NUMBER], RemoteRecords(3)], inca.Interval(0, 1)),
    PreparedRelease: lambda: PreparedRelease(
        Records.of([[NUMBER], [NUMBER]], inca.Interval(0, 1)),
        SimulatedAverager.of("central", 2),
        Budget(1.0, 1e-5),
        np.random.default_rng(123456789),
        0.95,
        repeatable=True,
        files=OutputFiles(),
    ),
    Dataset: lambda: DATASET,
    _DividedData: lambda: _DividedData(DATASET, DATASET, np.zeros(3, dtype=np.intp)),
    PrivateLogisticRegression: lambda: PrivateLogisticRegression(random_state=123456789),
    SimulatedData: lambda: SimulatedData(VALUES, NOISE),
    ShownRun: shown_run,
    OpenedFile: shown_file,
    KeptDocument: kept_document,
    KeptDocuments: documents,
    Opened: lambda: OPENED,
    Began: lambda: Began(2, SECRET),
    Credited: lambda: Credited(2, SECRET),
    PayloadFile: lambda: PayloadFile(Path("journal.db-payload-0"), 0, len(SECRET)),
    Offer: lambda: OFFER,
    Item: lambda: ITEM,
    Items: lambda: Items([ITEM]),
    Signed: lambda: Signed(ITEM),
    Key: lambda: Key(0, SECRET),
    Digest: lambda: Digest(Account([], [], []), SECRET, [public_of(SECRET)]),
    Deposit: lambda: Deposit(0, SECRET, SECRET, SECRET, SECRET),
    CohortSecrets: lambda: CohortSecrets(SECRET, 0),
    Secret: lambda: Secret(0, SECRET),
    OpenedDeposits: lambda: OpenedDeposits(np.full(3, STEPS), {1: SECRET}, frozenset(), [ITEM]),
    Keystream: lambda: Keystream(SECRET, b"masks"),
    Effects: lambda: Effects([OPENED, Began(2, SECRET)], [(1, OFFER)]),
    Ledger: opened_ledger,
    Party: opened_party,
    PartyContext: lambda: opened_party().context,
    Machine: lambda: Machine(np.full(3, STEPS), 0.0, [OPENED], opened_party(), ledger=opened_ledger()),
}
"""One of each class that holds values, noise or secrets; `LocalCluster` and `Identity` have tests of their own."""

PUBLIC: dict[str, str] = {
    f"{kind}.{field}": why
    for kind in ("SimulatedRun", "RunQuestion", "AdversaryQuestion", "NoiseQuestion")
    for field, why in (
        ("seed", "decides made-up values; it is in the page's address"),
        ("records", "how many records a made-up value stands for"),
    )
} | {
    "Seed.seed": "who sends to whom is public",
    "PublicSeed.seed": "who sends to whom is public",
    "SessionConfig.seed": "the public seed of a session's schedule",
    "Terms.seed": "the public seed of a session's schedule",
    "RelayAccess.key": "a party's public key, by which relays know it",
    "RelayClaim.key": "a party's public key, by which relays know it",
    "RelayLimits.max_per_key": "how many connections a key may have",
    "RelayOptions.key": "the path of a file",
    "Seeded.seed": "the public seed of a session's schedule",
    "Provenance.seed": "of a reproduction, with made-up values",
    "PlansBeside.seed": "of a reproduction, with made-up values",
    "SessionConfig.largest_value": "follows from the domain, which is agreed",
    "ShareBounds.values": "follow from the terms and the schedule, which are public",
    "OfferProof.payload_hash": "shown as a size, like all bytes that travel",
    "Proof.keys": "their trustees have shown them, after commit",
    "Step.masks": "variances of the accountant, which follow from public noise levels",
    "Step.share": "coefficients of the accountant, which follow from the public execution",
    "Operator.masks": "variances of the accountant, which follow from public noise levels",
    "Operator.share": "coefficients of the accountant, which follow from the public execution",
    "Workspace.masks": "coefficients of masks in what the accountant works out, not masks",
    "Workspace.values": "coefficients of values in what the accountant works out, not values",
    "Injection.value": "coefficients c, which are public",
    "Injection.noise": "coefficients Z, which are public",
    "InjectionFields.value": "coefficients c, which are public",
    "InjectionFields.noise": "coefficients Z, which are public",
    "SumCoefficients.value": "coefficients of the sum, which follow from who sent to whom",
    "SumCoefficients.noise_squared": "coefficients of the sum, which follow from who sent to whom",
    "Round.share": "which part of a message is sent on",
    "ExecutionDocument.share": "which part of a message is sent on",
    "_LineErrors.features": "a map from records to what is averaged, without records",
    "QuantileEstimate.share": "which quantile it is",
    "LargestNeed.value": "a computed level of noise",
    "_LargeSets.honest_share": "a fraction of parties",
    "Row.value": "made to be printed; the exact mean is in one only if people ask for it",
    "Content.tables": "made to be printed: other designs, conditions of theorems, counts of log lines",
    "Study.records": "how many records each party holds, which is public",
    "FigureResults.tables": "figures of a reproduction, with made-up values",
    **{
        f"{name}.{field}": "a level or a variance of noise, which is public"
        for name, fields in {
            "Plan": ("noise_levels",),
            "TrainingStep": ("sigma_noise",),
            "VectorMean": ("var_noise",),
            "FeatureMean": ("var_noise",),
            "Estimate": ("var_noise",),
            "DistributionEstimate": ("var_noise",),
            "LinearFit": ("_cov_noise",),
        }.items()
        for field in fields
    },
}
"""Fields that are named like private data and are not, each with the reason."""

SHOWN: dict[str, str] = {
    "AveragingLoop": "which step, and its budget",
    "_Command": "the name of a command",
    "_Group": "the name of a group of commands",
    "Budget": "what was spent",
    "Execution": "who sent to whom",
}
"""Classes with a `repr` of their own that hold nothing private."""

WORDS = {"value", "noise", "noisy", "seed", "secret", "private", "mask", "share", "key", "record", "table", "payload"}
WORDS |= {"feature", "random"}


@cache
def classes() -> tuple[type, ...]:
    """Return all classes of the package."""
    kinds: list[type] = []
    for module in pkgutil.walk_packages(inca.__path__, "inca."):
        if module.name != "inca.__main__":  # it runs the command line
            for kind in vars(importlib.import_module(module.name)).values():
                if inspect.isclass(kind) and kind.__module__ == module.name:
                    kinds.append(kind)
    return tuple(kinds)


def field_names(kind: Any) -> tuple[str, ...] | None:
    """Return the fields of a class that would show them by itself; None of others."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    if issubclass(kind, msgspec.Struct):
        return tuple(kind.__struct_fields__)
    return tuple(kind._fields) if issubclass(kind, tuple) and hasattr(kind, "_fields") else None


def sounds_private(field: str) -> bool:
    return any(word.removesuffix("s") in WORDS for word in field.split("_"))


def spellings(thing: object) -> Iterator[str]:
    yield from (repr(thing), str(thing), f"{thing}", f"{[thing]}", f"{thing!r}")


def assert_hidden(thing: object, secrets: set[str] = SPELLINGS) -> None:
    for shown in spellings(thing):
        text = ADDRESS.sub("", shown)
        assert not DIGITS.search(text), text
        assert not [secret for secret in secrets if secret in text], text


@pytest.mark.parametrize("kind", HOLDERS, ids=lambda kind: kind.__name__)
def test_no_spelling_of_it_shows_what_it_holds(kind: type) -> None:
    thing = HOLDERS[kind]()
    assert isinstance(thing, kind)
    assert_hidden(thing)


def test_a_party_in_mid_session_shows_nothing() -> None:
    party = running_party()
    ledger = party.ledger
    hidden = [ledger.balance, ledger.injected, *map(ledger.share, ledger.began)]
    secrets = {str(number) for vector in hidden for number in np.abs(vector).tolist() if number > 1000}
    for thing in (party, ledger, party.context):
        assert_hidden(thing, secrets)


def test_an_identity_shows_no_key() -> None:
    identity = Identity.create("anna")
    private = identity.key.private_bytes_raw()
    assert_hidden(identity, {private.hex(), base64.b64encode(private).decode(), repr(private)[2:-1]})


def test_a_cluster_shows_no_value(tmp_path: Path) -> None:
    assert_hidden(LocalCluster(tmp_path, np.full(3, NUMBER), ("anna", "bert", "cleo"), terms()))


def test_whatever_is_named_like_private_data_is_hidden_or_explained() -> None:
    named = {
        f"{kind.__name__}.{field}": kind
        for kind in classes()
        for field in field_names(kind) or ()
        if sounds_private(field) and cast(Any, kind).__repr__ is not object.__repr__
    }
    assert len(named) > 40
    tested = {*HOLDERS, Identity, LocalCluster}
    assert {name for name, kind in named.items() if kind not in tested} == set(PUBLIC)


def test_a_class_shows_itself_by_its_fields_or_by_a_repr_that_is_known_here() -> None:
    """Others show no more than their address."""
    known = {kind.__name__ for kind in HOLDERS} | set(SHOWN)
    for kind in classes():
        if field_names(kind) is None and not issubclass(kind, (BaseException, enum.Enum)):
            silent = kind.__repr__ is object.__repr__ and kind.__str__ is object.__str__
            assert silent or kind.__name__ in known, kind


@dataclass
class Careless:
    values: Array
    key: bytes


def test_what_is_not_hidden_would_be_noticed() -> None:
    for careless in (Careless(VALUES, b""), Careless(np.zeros(1), SECRET), (STEPS,), 1e9 * NUMBER, SECRET.hex()):
        with pytest.raises(AssertionError):
            assert_hidden(careless)
    assert field_names(Careless) == ("values", "key") and all(map(sounds_private, field_names(Careless) or ()))


# --- refusals ---------------------------------------------------------------------------------------------------------


def setup() -> SessionSetup:
    cards = [Identity.create(name).card(f"127.0.0.1:{7001 + i}") for i, name in enumerate(("anna", "bert", "cleo"))]
    return SessionSetup(Roster("trial", terms(upper=0.1), tuple(cards)))


REFUSED: dict[str, Callable[[Path], object]] = {
    "a mean": lambda folder: inca.average(
        VALUES, inca.Interval(0, 0.1), inca.ByHand(sigma_independent=1.0, sigma_cancelling=1.0)
    ),
    "an interval": lambda folder: inca.Interval(0, 0.1).validate(VALUES),
    "a ball": lambda folder: inca.Ball(0.1).validate(VALUES),
    "values that are no numbers": lambda folder: inca.Interval(0, 1).validate([f"{NUMBER} min"]),
    "too many values": lambda folder: inca.simulate(
        EXECUTION, np.full(9, NUMBER), inca.NoiseLevels(independent=1.0, cancelling=1.0), np.random.default_rng(1)
    ),
    "noise of another shape": lambda folder: inca.simulate(EXECUTION, VALUES, noise=Noise(VALUES, VALUES)),
    "records": lambda folder: Records.of([[NUMBER]], inca.Interval(0, 0.1), clip=False),
    "records in a file": lambda folder: read_parties(folder / "records.csv", "clinic", [("--column", "age")]),
    "records in a file without names": lambda folder: read_parties(folder / "value.txt", "clinic", [("--column", "a")]),
    "a party's value": lambda folder: setup().add_noise(np.array([NUMBER])),
    "a party's value of two numbers": lambda folder: setup().add_noise(np.array([NUMBER, NUMBER])),
    "a value instead of a card": lambda folder: read_card(folder / "value.txt"),
    "a value instead of a plan": lambda folder: inca.read_plan(folder / "value.txt"),
    "a value instead of an execution": lambda folder: inca.read_execution(folder / "value.txt"),
    "a value instead of a roster": lambda folder: read_roster(folder / "value.txt"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_does_not_repeat_what_it_refuses(case: str, tmp_path: Path) -> None:
    (tmp_path / "value.txt").write_text(f"{NUMBER}")
    (tmp_path / "records.csv").write_text(f"clinic,age\na,{NUMBER} years\n")
    with pytest.raises(inca.IncaError) as refusal:
        REFUSED[case](tmp_path)
    assert_hidden(refusal.value)
