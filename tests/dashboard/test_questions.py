"""Parameters that cannot be understood."""

from __future__ import annotations

import pytest

from helpers.dashboard_server import Dashboard


@pytest.mark.parametrize(
    ("name", "params", "sentence"),
    [
        ("run", {"parties": "many"}, "parties: must be a whole number, got text"),
        ("run", {"parties": ""}, "parties: must be a whole number, got text"),
        ("run", {"seed": "9" * 5000}, "seed: is too large a number"),
        ("run", {"sigma_canceling": 60}, "sigma_canceling: is not a field of this format"),
        ("run", {"parties": 1}, "parties must be from 2 to 5000, got 1"),
        ("run", {"rounds": 0}, "rounds must be from 1 to 200, got 0"),
        ("run", {"parties": 5, "receivers": 5}, "receivers must be from 1 to 4, got 5"),
        (
            "run",
            {"schedule": "star"},
            "schedule must be one of permutation, random, distinct, circle, hypercube, complete, got",
        ),
        ("run", {"injection": "none"}, "injection must be one of incremental, early, single, plain, got 'none'"),
        ("run", {"sigma_cancelling": "nan"}, "sigma_cancelling must be a finite number, from 0 to 1e+12, got nan"),
        ("run", {"sigma_independent": "-1"}, "sigma_independent must be from 0 to 1e+12, got -1.0"),
        ("run", {"sigma_independent": "inf"}, "sigma_independent must be a finite number, from 0 to 1e+12, got inf"),
        ("run", {"absent": "3"}, "an entry of absent must be PARTY:ROUND, PARTY:FIRST-LAST or PARTY:FIRST-, got '3'"),
        ("run", {"absent": "99:1-"}, "a party in absent must be from 0 to 11, got 99"),
        ("run", {"absent": "1:5-2"}, "a last round in absent must be from 5 to 10, got 2"),
        ("run", {"parties": 5000, "rounds": 200}, "at most 400,000 messages to look at, got 1000000"),
        (
            "run",
            {"file": "nothing"},
            "file must be the id of a file that is open here, 16 hexadecimal digits, got 'nothing'",
        ),
        ("run", {"colluding": "99"}, "an id in colluding must be a party id from 0 to 11, got 99"),
        ("run", {"eavesdropped": "99:1"}, "a message in eavesdropped must be a message (t, i) with t from 0 to 10"),
        ("adversary", {"colluding": "1 x"}, "an id in colluding must be a whole number, got 'x'"),
        ("adversary", {"colluding": "1 1"}, "colluding must be a list with every id at most once, got [1, 1]"),
        ("adversary", {"colluding": "99"}, "an id in colluding must be a party id from 0 to 11, got 99"),
        ("adversary", {"parties": 3, "colluding": "0 1 2"}, "the number of colluding parties must be"),
        ("adversary", {"eavesdropped": "one"}, "an entry of eavesdropped must be ROUND:PARTY, or ROUND:* for all"),
        ("adversary", {"delta": 2}, "delta: must be at most 1"),
        ("adversary", {"delta": "nan"}, "delta: must be at least 0"),
        ("adversary", {"delta": "x"}, "delta: must be a number, got text"),
        ("adversary", {"sensitivity": 0}, "sensitivity: must be above 0"),
        ("adversary", {"sensitivity": "inf"}, "sensitivity: must be at most 1e+300"),
        ("sufficient-noise", {"epsilon": 0}, "epsilon: must be above 0"),
        ("sufficient-noise", {"epsilon": "1e999"}, "epsilon: is too large a number"),
        ("sufficient-noise", {"epsilon": "x"}, "epsilon: must be a number, got text"),
        ("plan", {"messages": 1}, "messages must be at least 2, got 1"),
        ("plan", {"parties": "few"}, "parties: must be a whole number, got text"),
        ("plan", {"dropout": "many"}, "dropout: must be a number or null, got text"),
        ("plan", {"epsilon": 0}, "epsilon must be above 0, got 0.0"),
        ("plan", {"messages": 3, "parties": 100}, "2 rounds are too few to join every honest party with the others"),
        ("plan", {"epsilon": "nan"}, "epsilon must be a finite number, got nan"),
        ("plan", {"sensitivity": 2}, "sensitivity: is not a field of this format"),
        ("file", {"files": "x"}, "files: is not a field of this format"),
        ("session", {"session": "nothing"}, "session must be one in the folders that are watched, got 'nothing'"),
        ("session", {}, "session must be one in the folders that are watched, got ''"),
        ("file", {}, "file must be the id of a file that is open here, 16 hexadecimal digits, got ''"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(
    board: Dashboard, name: str, params: dict[str, object], sentence: str
) -> None:
    assert sentence in board.refusal(name, **params)
