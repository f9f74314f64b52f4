from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import inca
from helpers.documents import words
from inca._base.options import Rule
from inca.documents.certificate import ASSUMPTIONS, CertificateDocument
from inca.protocol.execution_files import digest
from inca.protocol.rounding import Rounding
from inca.protocol.transcript import AgreedGuarantee
from inca.reporting.content import content


def transcript(absent: Any = False, **more: Any) -> inca.Transcript:
    presence = inca.Presence.leaving(40, 12, 0.2, np.random.default_rng(1)) if absent else None
    execution = inca.Execution(inca.RandomReceivers(40, 12, seed=4), inca.incremental_injection(12), presence)
    adversary = inca.Adversary((3, 8, 21))
    full = inca.Transcript(
        execution, sigma_independent=2.0, sigma_cancelling=15.0, adversary=adversary, sensitivity=1.0
    )
    return replace(full, **more)


def test_a_certificate_holds_what_the_accountant_found() -> None:
    known = transcript()
    certificate = inca.certify(known, sensitivity=3.0, delta=1e-6)
    losses = inca.account(inca.View(known.execution, known.adversary), known.noise_levels, sensitivity=3.0)
    fields = json.loads(json.dumps(certificate.document().as_fields(), allow_nan=False))
    assert fields["format"] == "inca-certificate/2" and fields["assumptions"] == list(ASSUMPTIONS)
    assert fields["honest"] == [i for i in range(40) if i not in (3, 8, 21)]
    assert fields["mu"] == losses.mu.tolist()
    assert fields["epsilon"] == losses.epsilon(1e-6).tolist()
    assert fields["worst"] == {"party": losses.worst_party, "mu": losses.max_mu, "epsilon": max(fields["epsilon"])}
    assert fields["full_attendance"] is None and certificate.worst_epsilon == max(fields["epsilon"])
    assert fields["execution"] == f"sha256:{digest(known)}"
    assert fields["rank"] == {"hidden": 36, "needed": 36, "met": True}
    assert fields["total_weight"] == 40.0


def test_with_absences_it_also_says_what_full_attendance_would_give() -> None:
    certificate = inca.certify(transcript(absent=True))
    assert certificate.full_attendance is not None
    full = inca.certify(transcript())
    np.testing.assert_array_equal(certificate.full_attendance.mu, full.losses.mu)
    assert certificate.worst_epsilon == max(float(certificate.epsilon.max()), full.worst_epsilon)
    full_attendance = certificate.document().full_attendance
    assert full_attendance is not None and full_attendance.epsilon == pytest.approx(full.worst_epsilon)
    assert "At full attendance" in words(certificate)


def test_the_digest_names_the_execution_the_adversary_and_the_noise(tmp_path: Path) -> None:
    known = transcript(absent=True)
    for name in ("a.json", "a.npz"):
        inca.write_execution(tmp_path / name, known)
        assert digest(inca.read_execution(tmp_path / name)) == digest(known)
    others = [replace(known, sigma_cancelling=15.5), replace(known, adversary=inca.Adversary((3, 8))), transcript()]
    assert len({digest(other) for other in (known, *others)}) == 4


def test_infinite_losses_are_null_in_json_and_said_in_words() -> None:
    certificate = inca.certify(transcript(sigma_independent=0.0))
    assert math.isinf(certificate.worst_epsilon)
    assert certificate.document().epsilon == (None,) * 37
    assert "No guarantee       37 of 37 honest parties have an infinite loss." in str(content(certificate))


def test_a_certificate_is_written_whole(tmp_path: Path) -> None:
    certificate = inca.certify(transcript())
    certificate.write(tmp_path / "c.json")
    assert CertificateDocument.read(tmp_path / "c.json") == certificate.document()
    with pytest.raises(inca.InvalidInput, match="cannot be written"):
        certificate.write(tmp_path / "nowhere" / "c.json")
    assert [path.name for path in tmp_path.iterdir()] == ["c.json"]


@pytest.mark.parametrize("name", ["sigma_independent", "sigma_cancelling", "sensitivity", "adversary"])
def test_nothing_that_losses_depend_on_is_assumed(name: str) -> None:
    with pytest.raises(inca.InvalidInput, match=f"{name} must be known to account for an execution.*, got None"):
        inca.certify(transcript(**{name: None}))


def test_a_sensitivity_below_that_of_the_execution_is_refused() -> None:
    known = transcript(sensitivity=100.0)
    assert inca.certify(known, sensitivity=100.0).worst_epsilon == inca.certify(known).worst_epsilon
    assert inca.certify(known, sensitivity=200.0).losses.max_mu == pytest.approx(2 * inca.certify(known).losses.max_mu)
    with pytest.raises(inca.InvalidInput, match=r"sensitivity must be at least 100, as the execution says, got 1.0"):
        inca.certify(known, sensitivity=1.0)


def test_epsilon_is_stated_at_the_agreed_delta() -> None:
    agreed = AgreedGuarantee(epsilon=2.0, delta=1e-7, colluding=0.05)
    assert inca.certify(transcript(agreed=agreed)).delta == 1e-7
    assert inca.certify(transcript(agreed=agreed), delta=1e-3).delta == 1e-3


def test_with_undelivered_offers_it_says_what_would_be_had_they_arrived() -> None:
    whole = transcript()
    meant = np.stack([step.receivers for step in whole.execution.intended()])
    torn = meant.copy()
    torn[[0, 3], [7, 9]] = -1
    offers = [(1, 7, int(meant[0, 7, 0]), 1), (4, 9, int(meant[3, 9, 0]), 0)]
    execution = inca.Execution(inca.ExplicitSchedule(torn), inca.incremental_injection(12), undelivered=offers)
    full = inca.certify(whole).losses
    for intended in (None, whole.execution.schedule):
        certificate = inca.certify(replace(whole, execution=execution), intended=intended)
        assert certificate.full_attendance is not None
        np.testing.assert_allclose(certificate.full_attendance.mu, full.mu, rtol=1e-9)
        assert certificate.worst_epsilon == max(
            float(certificate.epsilon.max()), float(certificate.full_attendance.epsilon(1e-5).max())
        )
        assert "Had everyone been present and every share arrived, party" in words(certificate)
    other = inca.certify(whole, intended=inca.RandomReceivers(40, 12, seed=5))
    assert other.full_attendance is not None and not np.allclose(other.full_attendance.mu, full.mu)
    with pytest.raises(
        inca.InvalidInput, match=r"of intended must be those of the execution, \(40, 12\), got \(39, 12\)"
    ):
        inca.certify(whole, intended=inca.RandomReceivers(39, 12, seed=5))


def test_a_certificate_states_the_rule_that_turned_mu_into_epsilon() -> None:
    for rule in get_args(Rule):
        certificate = inca.certify(transcript(), rule=rule)
        assert certificate.document().rule == rule and f"  Rule               {rule}\n" in words(certificate)


def test_what_is_printed_of_one_is_short() -> None:
    certificate = inca.certify(transcript())
    epsilon = certificate.worst_epsilon
    expected = f"Certificate(Execution(parties=40, rounds=12), Collusion DP, epsilon={epsilon:.6g}, delta=1e-05)"
    assert repr(certificate) == expected


def test_what_whole_numbers_add_is_in_every_loss_also_at_full_attendance() -> None:
    rounding = Rounding(excess=0.25, mu_added=0.125)
    plain, whole = (inca.certify(transcript(absent=True, rounding=given)) for given in (None, rounding))
    np.testing.assert_allclose(whole.losses.mu, plain.losses.mu / 1.25 + 0.125)
    assert plain.full_attendance is not None and whole.full_attendance is not None
    np.testing.assert_allclose(whole.full_attendance.mu, plain.full_attendance.mu / 1.25 + 0.125)
    assert whole.worst_epsilon == pytest.approx(
        float(inca.epsilon_for(max(whole.losses.max_mu, whole.full_attendance.max_mu), 1e-5))
    )


def test_the_text_says_how_much_was_heard_and_whether_messages_hid_enough() -> None:
    heard = words(inca.certify(transcript(adversary=inca.Adversary((3, 8, 21), ((0, 5), (2, 7))))))
    assert "3 of 40 parties collude, 2 messages eavesdropped" in heard
    quiet = words(inca.certify(transcript()))
    assert "messages eavesdropped" not in quiet and "rank 36 of 36 needed: met\n" in quiet
    execution = inca.Execution(inca.ExplicitSchedule([[[1], [0], [3], [2]]]), inca.incremental_injection(1))
    apart = words(inca.certify(transcript(execution=execution, adversary=inca.Adversary(()))))
    assert "rank 2 of 3 needed: NOT met\n" in apart
    for sentence in ASSUMPTIONS:
        assert f"  - {sentence}" in quiet


def test_both_accountings_report_progress() -> None:
    steps: list[tuple[int, int]] = []
    inca.certify(transcript(absent=True), progress=lambda done, total: steps.append((done, total)))
    assert steps.count((13, 13)) == 2


def test_a_stated_sensitivity_may_be_any_where_the_execution_says_none() -> None:
    known = transcript(sensitivity=None)
    half = inca.certify(known, sensitivity=0.5)
    assert half.sensitivity == 0.5
    assert inca.certify(known, sensitivity=1.0).losses.max_mu == pytest.approx(2 * half.losses.max_mu)
    assert inca.certify(known, sensitivity=0.0).worst_epsilon == 0.0
    for bad in (-1.0, math.nan):
        with pytest.raises(inca.InvalidInput, match="sensitivity must be"):
            inca.certify(known, sensitivity=bad)


def test_delta_is_a_probability_and_1e_5_unless_something_was_agreed() -> None:
    assert inca.certify(transcript()).delta == 1e-5
    for bad in (-0.1, 1.1):
        with pytest.raises(inca.InvalidInput, match="delta must be from 0 to 1"):
            inca.certify(transcript(), delta=bad)


def test_the_worst_loss_is_that_of_full_attendance_where_absences_protect_by_accident() -> None:
    """Noise that leavers could not take back protects the others: it must not be taken for the promise (E11)."""
    certificate = inca.certify(transcript(absent=True))
    assert certificate.full_attendance is not None
    largest = max(certificate.losses.max_mu, certificate.full_attendance.max_mu)
    assert certificate.worst_epsilon == pytest.approx(float(inca.epsilon_for(largest, 1e-5)))
    stated = certificate.document().full_attendance
    assert stated is not None and stated.mu == certificate.full_attendance.max_mu
    assert stated.party == certificate.full_attendance.worst_party
