"""`content(document)`: all that is to be said of a document, whichever it is."""

from __future__ import annotations

from inca._base.validation import refuse
from inca.documents.average import AverageDocument
from inca.documents.certificate import CertificateDocument
from inca.documents.document import Document
from inca.documents.plan import PlanDocument
from inca.documents.result import ResultDocument
from inca.protocol.transcript import Transcript
from inca.reporting.average import average_content
from inca.reporting.certificate import certificate_content
from inca.reporting.execution import execution_content
from inca.reporting.parts import Content
from inca.reporting.plan import plan_content
from inca.reporting.result import result_content
from inca.reporting.verdict import Documented, document_of


def content(about: Document | Documented | Transcript) -> Content:
    """Return what is to be said of a document: print it, or give it to a renderer.

    Args:
        about: A document, what has one, or an execution's transcript. Nothing is accounted.

    Returns:
        Verdict, facts, caveats, figures and assumptions.

    Example:
        >>> import inca
        >>> execution = inca.Execution(inca.RandomReceivers(9, rounds=4, seed=1), inca.incremental_injection(4))
        >>> levels = {"sigma_independent": 1.0, "sigma_cancelling": 10.0, "sensitivity": 1.0}
        >>> certificate = inca.certify(inca.Transcript(execution, **levels, adversary=inca.Adversary([0])))
        >>> print(str(content(certificate)).splitlines()[0])
        Certificate of privacy   9 parties, 4 rounds
    """
    document = about if isinstance(about, Transcript) else document_of(about)
    match document:
        case CertificateDocument():
            return certificate_content(document)
        case ResultDocument():
            return result_content(document)
        case AverageDocument():
            return average_content(document)
        case PlanDocument():
            return plan_content(document)
        case Transcript():
            return execution_content(document)
        case _:
            refuse("about", about, "a document with a verdict, what has one, or a transcript")
