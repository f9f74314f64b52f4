"""The same task with every aggregator: a table whose rows can be compared, from the library and the command."""

from __future__ import annotations

import json
from typing import Any

import pytest

from inca.learn.compare import Score, Task, compare
from inca.validation import InputError
from test_cli import call

SMALL = Task(parties=20, steps=6)


@pytest.fixture(scope="module")
def scores() -> list[Score]:
    return compare(SMALL, [0.5, 8.0], [0.0, 0.2], seeds=3, kinds=["central", "local"])


def cell(scores: list[Score], name: str, epsilon: float | None, dropout: float = 0.0) -> Score:
    (found,) = [each for each in scores if (each.aggregator, each.epsilon, each.dropout) == (name, epsilon, dropout)]
    return found


def test_every_setting_has_a_row(scores: list[Score]) -> None:
    assert len(scores) == 2 + 2 * 2 * 2
    assert all(each.seeds == 3 and each.accuracy is not None and 0.0 <= each.accuracy <= 1.0 for each in scores)


def test_training_helps_and_privacy_costs(scores: list[Score]) -> None:
    """The differences are many standard errors wide."""
    plain, guess = cell(scores, "not private", None).accuracy, cell(scores, "most frequent class", None).accuracy
    good, bad = cell(scores, "central", 8.0).accuracy, cell(scores, "local", 0.5).accuracy
    assert plain is not None and guess is not None and good is not None and bad is not None
    assert plain > guess + 0.1 and good > bad + 0.1 and good > guess


def test_a_seed_decides_everything(scores: list[Score]) -> None:
    again = compare(SMALL, [8.0], [0.2], seeds=3, kinds=["central"])
    assert cell(again, "central", 8.0, 0.2) == cell(scores, "central", 8.0, 0.2)


def test_what_cannot_be_calibrated_says_why_and_the_others_go_on() -> None:
    found = compare(Task(parties=4, steps=2, messages=1), [1.0], [0.0], seeds=2, kinds=["inca", "local"], views=10)
    own = cell(found, "inca", 1.0)
    assert own.accuracy is None and own.why_not
    assert cell(found, "local", 1.0).accuracy is not None


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"task": Task(data="iris")}, "data is 'iris'"),
        ({"task": Task(data="diabetes")}, "data is 'diabetes', but a data set with classes was expected"),
        ({"epsilons": []}, "epsilons is"),
        ({"epsilons": [0.0]}, "epsilon is 0"),
        ({"dropouts": [1.5]}, "a dropout rate is 1.5"),
        ({"seeds": 1}, "seeds is 1"),
        ({"kinds": []}, "kinds is"),
        ({"task": Task(parties=10_000)}, "parties is 10000"),
    ],
)
def test_bad_input_is_refused(given: dict[str, Any], sentence: str) -> None:
    usual: dict[str, Any] = {"task": SMALL, "epsilons": [1.0], "dropouts": [0.0], "seeds": 2, "kinds": ["central"]}
    with pytest.raises(InputError, match=sentence):
        compare(**usual | given)


def test_the_command_prints_a_table_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "learn",
        "compare",
        "--parties",
        12,
        "--steps",
        2,
        "--seeds",
        2,
        "--epsilon",
        3,
        "--dropout",
        0,
        "--views",
        10,
    ]
    status, out, err = call(capsys, *words, "--json")
    assert (status, err) == (0, "")
    told = json.loads(out)
    assert told["task"]["parties"] == 12 and len(told["scores"]) == 2 + 5
    status, out, err = call(capsys, *words)
    assert (status, err) == (0, "")
    for part in ("not private", "inca, epsilon 3", "gopa, epsilon 3", "+-"):
        assert part in out
    status, out, err = call(capsys, *words, "--level", "person")
    assert status == 2 and err == "inca: --level is 'person', but party or record was expected\n"
