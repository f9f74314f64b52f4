"""Whether what was agreed is kept, broken, or not known, and why: the only place that decides it, and that says it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from scipy.special import ndtr

from inca._base.validation import method_of
from inca.documents.average import AverageDocument
from inca.documents.certificate import CertificateDocument
from inca.documents.document import Document, infinite_if_none
from inca.documents.plan import PlanDocument
from inca.documents.result import ResultDocument
from inca.errors import InvalidInput
from inca.privacy.gaussian import epsilon_for, mu_for
from inca.protocol.adversary import Adversary, RandomAdversary
from inca.reporting.parts import Sentence, Standing, capital, rounded_up

_ROUNDING = 1e-6  # of a loss: numbers of a file that differ by less agree

Worded = AverageDocument | CertificateDocument | PlanDocument | ResultDocument
"""Documents that have a verdict."""

Why = Literal[
    "within",
    "above",
    "infinite",
    "bound above",
    "smaller adversary",
    "larger delta",
    "failure unknown",
    "nothing agreed",
    "not worked out",
    "promise",
]

_STANDINGS: dict[Why, tuple[bool | None, Standing, str]] = {
    "within": (True, "good", "kept"),
    "above": (False, "bad", "broken"),
    "infinite": (False, "bad", "no guarantee"),
    "bound above": (None, "bad", "not shown"),
    "smaller adversary": (None, "unknown", "not known"),
    "larger delta": (None, "unknown", "not known"),
    "failure unknown": (None, "unknown", "not known"),
    "nothing agreed": (None, "unknown", "not known"),
    "not worked out": (None, "unknown", "not known"),
    "promise": (None, "plain", "promise"),
}
"""For each reason: whether the guarantee is kept, how to show it, and the word for it."""


@dataclass(frozen=True)
class Verdict:
    """Whether a guarantee is kept.

    Args:
        why: What decided.
        text: The verdict in one sentence.
    """

    why: Why
    text: str

    def __str__(self) -> str:
        return f"{capital(self.sentence.badge)}: {self.text}"

    @property
    def kept(self) -> bool | None:
        """Whether the guarantee is kept; None if that is not known."""
        return _STANDINGS[self.why][0]

    @property
    def refused(self) -> bool:
        """Whether the guarantee is broken, or a bound is too large to show that it is kept."""
        return self.why in ("above", "infinite", "bound above")

    @property
    def sentence(self) -> Sentence:
        """The verdict as part of a content."""
        _, standing, badge = _STANDINGS[self.why]
        return Sentence(standing, badge, self.text)


class Documented(Protocol):
    """What has a document: a `Certificate`, a `Plan`, a `PrivateMean`."""

    def document(self) -> Document:
        """Return the document."""
        ...


def document_of(about: Document | Documented) -> Document:
    """Return a document, or that of what has one."""
    if isinstance(about, Document):
        return about
    method_of("about", about, "document", "a document, or what has one, such as a certificate")
    return about.document()


def verdict(about: Document | Documented) -> Verdict:
    """Return the verdict on a certificate, a result, an average or a plan.

    Example:
        >>> import inca
        >>> execution = inca.Execution(inca.RandomReceivers(9, rounds=4, seed=1), inca.incremental_injection(4))
        >>> levels = {"sigma_independent": 1.0, "sigma_cancelling": 10.0, "sensitivity": 1.0}
        >>> certificate = inca.certify(inca.Transcript(execution, **levels, adversary=inca.Adversary([0])))
        >>> verdict(certificate.document()).text
        'The file does not say what was agreed: compare the loss with what was promised.'
        >>> verdict(certificate.document(required=2.0)).kept
        True
    """
    match document := document_of(about):
        case CertificateDocument():
            return _certificate(document)
        case ResultDocument():
            return _result(document)
        case AverageDocument():
            return _average(document)
        case PlanDocument():
            return _plan(document)
        case _:
            raise InvalidInput(f"about must be a document with a verdict, got {document.kind}")


def compare(loss: float, allowed: float, *, is_bound: bool = False) -> Why:
    """Return how a loss compares with the one that is allowed."""
    if loss <= allowed < math.inf:
        return "within"
    if math.isinf(loss):
        return "infinite"
    return "bound above" if is_bound else "above"


def verdict_on(loss: float, required: float, delta: float) -> Verdict:
    """Return the verdict on the largest loss of any honest party, against what is required of it.

    >>> verdict_on(0.5, 1.0, 1e-5).text.removesuffix(", against this adversary.")
    'Every honest party loses epsilon 0.5 or less, within the required epsilon 1 at delta 1e-05'
    """
    return _stated(compare(loss, required), loss, f"the required {guarantee(required, delta)}")


def meaning(mu: float) -> str:
    """Return in one sentence what a loss means to a person.

    The best guess between two equally likely values of a party is right with probability Phi(mu / 2).

    >>> meaning(0.25)
    'Guessing which of two values a party holds succeeds at most 55 times in 100; a coin gets 50.'
    """
    right = min(100, math.ceil(100.0 * float(ndtr(mu / 2.0)) - 1e-9))
    return f"Guessing which of two values a party holds succeeds at most {right} times in 100; a coin gets 50."


def guarantee(epsilon: float, delta: float, failure: float | None = 0.0) -> str:
    """Return a guarantee as people write it.

    >>> guarantee(1.0, 1e-5, 5e-7), guarantee(1.0, 1e-5)
    ('epsilon 1 at delta 1e-05 + 5e-07', 'epsilon 1 at delta 1e-05')
    """
    more = " + an unknown probability" if failure is None else f" + {rounded_up(failure, 2)}" if failure else ""
    return f"epsilon {epsilon:g} at delta {delta:g}{more}"


def _certificate(document: CertificateDocument) -> Verdict:
    _check_losses(document)
    loss = document.worst_epsilon
    why, limit = _against(document)
    if math.isinf(loss):
        infinite = sum(epsilon is None for epsilon in document.epsilon)
        who = f"{infinite:,} of {len(document.honest):,} honest parties have" if infinite else "A party would have"
        return Verdict("infinite", f"{who} an infinite loss{'' if infinite else ' at full attendance'}.")
    return _stated(why, loss, limit, is_bound=document.is_bound, delta=document.delta)


def _stated(why: Why, loss: float, limit: str, *, is_bound: bool = False, delta: float = 0.0) -> Verdict:
    """Return the verdict on the largest loss of any honest party."""
    whose = "Every honest party that settled" if is_bound else "Every honest party"
    lost = f"epsilon {'at most ' * is_bound}{rounded_up(loss)}"
    or_less = "" if is_bound else " or less"
    sentences: dict[Why, str] = {
        "within": f"{whose} loses {lost}{or_less}, within {limit}, against this adversary.",
        "above": f"An honest party loses {lost}, more than {limit}, against this adversary.",
        "infinite": f"An honest party has an infinite loss; {limit} does not hold.",
        "bound above": f"An honest party may lose {lost}, which is a bound, and above {limit}.",
        "smaller adversary": f"This adversary is smaller than agreed, so whether {limit} is kept is open.",
        "larger delta": f"Losses here are at delta {delta:g}, so whether {limit} is kept is open.",
        "nothing agreed": "The file does not say what was agreed: compare the loss with what was promised.",
    }
    return Verdict(why, sentences[why])


def _against(document: CertificateDocument) -> tuple[Why, str]:
    """Return how a certificate's loss compares with what was asked for or agreed on, and the words for the latter."""
    loss, bound, agreed = document.worst_epsilon, document.is_bound, document.agreed
    if document.required is not None:
        limit = f"the required {guarantee(document.required, document.delta)}"
        return compare(loss, document.required, is_bound=bound), limit
    if agreed is None:
        return "nothing agreed", ""
    why = compare(loss, agreed.epsilon, is_bound=bound)
    if document.delta > agreed.delta and why == "within":
        why = "larger delta"
    elif why in ("within", "bound above") and not _covers(document):
        why = "smaller adversary"
    return why, f"the agreed {guarantee(agreed.epsilon, agreed.delta)}"


def _check_losses(document: CertificateDocument) -> None:
    """Refuse epsilons that do not follow from their mu: a verdict must not look better than the losses behind it."""
    full = document.full_attendance
    cases = [*zip(document.mu, document.epsilon, strict=True), *([] if full is None else [(full.mu, full.epsilon)])]
    mu, stated = (np.array([infinite_if_none(loss) for loss in column]) for column in zip(*cases, strict=True))
    implied = epsilon_for(mu, document.delta, document.rule)
    if not np.allclose(stated, implied, rtol=_ROUNDING, atol=1e-9):
        raise InvalidInput("epsilon: must follow from mu, delta and the rule of the certificate; it does not")


def _covers(document: CertificateDocument) -> bool:
    """Whether the adversary is at least as large as the agreed one."""
    assert document.agreed is not None
    adversary = Adversary(document.adversary.colluding, document.adversary.eavesdropped)
    size = RandomAdversary(colluding=document.agreed.colluding, eavesdropped=document.agreed.eavesdropped)
    return adversary.at_least(size, document.parties, document.rounds)


def _result(document: ResultDocument) -> Verdict:
    limit = f"the agreed {guarantee(document.agreed_epsilon, document.delta, document.failure)}"
    if (loss := document.loss) is None:
        reason = document.reason or "this party is not in the result"
        return Verdict("not worked out", f"The loss of {document.party} was not worked out ({reason}).")
    if not document.has_result or document.party not in (document.cohort or ()):
        # The loss that it worked out is of a run that came to nothing, or that went on without it.
        return Verdict("not worked out", f"{document.party} is in no result: what it lost was not worked out.")
    bound = len(document.cohort or ()) < document.parties
    why = compare(loss, document.agreed_epsilon, is_bound=bound)
    if why == "within" and document.failure is None and not document.all_coalitions:
        why = "failure unknown"
    which = "all there are" if document.all_coalitions else "drawn at random"
    against = f"against the worst of {document.coalitions:,} coalitions ({which})"
    lost = f"epsilon {'at most ' * (bound or document.coalition is None)}{rounded_up(loss)}"
    sentences: dict[Why, str] = {
        "within": f"{document.party} loses {lost}, within {limit}, {against}.",
        "above": f"{document.party} loses {lost}, more than {limit}, {against}.",
        "bound above": f"{document.party} may lose {lost}, above {limit}, {against}.",
        "infinite": f"The loss of {document.party} is infinite {against}; {limit} does not hold.",
        "failure unknown": f"{document.party} loses {lost} {against}; whether {limit} is kept is open.",
    }
    return Verdict(why, sentences[why])


def _average(document: AverageDocument) -> Verdict:
    agreed = document.agreed
    if agreed is None:
        return Verdict("nothing agreed", "No guarantee was asked for: the noise was chosen by hand.")
    limit = f"the required {guarantee(agreed.epsilon, agreed.delta, agreed.failure)}"
    if not document.audited:
        return Verdict("not worked out", f"Planned for {limit}; this run was not audited.")
    loss = infinite_if_none(document.epsilon)
    why = compare(loss, agreed.epsilon)
    sentences: dict[Why, str] = {
        "within": f"Every honest party loses epsilon {rounded_up(loss)} or less in this run, within {limit}.",
        "above": f"An honest party loses epsilon {rounded_up(loss)} in this run, more than {limit}.",
        "infinite": f"An honest party has an infinite loss in this run; {limit} does not hold.",
    }
    return Verdict(why, sentences[why])


def _plan(document: PlanDocument) -> Verdict:
    required = document.requirements
    promised = guarantee(required.epsilon, required.delta, document.failure_probability)
    return Verdict("promise", f"No honest party of any run loses more than {promised}.")


def mu_of(epsilon: float, delta: float) -> float:
    """Return the largest mu that a guarantee allows, for what it means; infinite where it allows anything."""
    return mu_for(epsilon, delta) if 0.0 < delta < 1.0 and 0.0 < epsilon < math.inf else math.inf
