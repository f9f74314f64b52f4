"""Every failure of a peer has a cause that programs read, and a sentence for people."""

from __future__ import annotations

import errno
import socket
import ssl

import pytest

from helpers.transports import TlsNetwork, closed_port, run
from inca.errors import PeerUnreachable, TransportViolation
from inca.network.transport.failures import FailureCause, describe_failure
from inca.network.transport.frames import Bye

pytestmark = pytest.mark.real_time


def tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, reason)
    error.reason = reason
    return error


def certificate_error() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "")
    error.verify_message = "self-signed certificate"
    return error


ERRORS: dict[FailureCause, list[Exception]] = {
    FailureCause.REFUSED: [ConnectionRefusedError(errno.ECONNREFUSED, "")],
    FailureCause.TIMED_OUT: [OSError(errno.ETIMEDOUT, "")],
    FailureCause.NO_ROUTE: [OSError(errno.EHOSTUNREACH, ""), OSError(errno.ENETUNREACH, "")],
    FailureCause.NO_ADDRESS: [socket.gaierror(-2, "Name or service not known"), UnicodeError("label too long")],
    FailureCause.OUR_MACHINE: [OSError(errno.EMFILE, "Too many open files"), OSError(errno.ENOMEM, "")],
    FailureCause.LOST: [ConnectionResetError(errno.ECONNRESET, ""), BrokenPipeError(errno.EPIPE, "")],
    FailureCause.WRONG_CERTIFICATE: [certificate_error(), tls_error("PEER_DID_NOT_RETURN_A_CERTIFICATE")],
    FailureCause.CERTIFICATE_REFUSED: [tls_error("TLSV1_ALERT_UNKNOWN_CA")],
    FailureCause.NOT_TLS: [tls_error("WRONG_VERSION_NUMBER"), tls_error("HTTP_REQUEST")],
    FailureCause.OTHER_SESSION: [TransportViolation("is in another session", FailureCause.OTHER_SESSION)],
    FailureCause.UNKNOWN: [OSError(errno.EIO, "Input/output error"), OSError("no number at all")],
}


@pytest.mark.parametrize("cause", ERRORS)
def test_errors_have_a_cause_and_a_sentence(cause: FailureCause) -> None:
    for error in ERRORS[cause]:
        failure = describe_failure(error, "10.0.0.1:7001")
        assert failure.cause is cause
        assert "10.0.0.1:7001" in failure.detail and "\n" not in failure.detail
        raised = failure.as_error()
        assert isinstance(raised, PeerUnreachable) and (raised.cause, str(raised)) == (cause, failure.detail)


def test_goodbyes_have_a_cause_and_a_meaning() -> None:
    assert all(bye.meaning and isinstance(bye.cause, FailureCause) for bye in Bye)
    complaints = {bye: bye.cause for bye in (Bye.VERSION, Bye.SESSION, Bye.OLD_INCARNATION)}
    assert all(Bye.because_of(cause) is bye for bye, cause in complaints.items())
    assert Bye.because_of(FailureCause.VIOLATION) is Bye.PROTOCOL
    assert Bye.read(b"\x06") is Bye.SESSION and Bye.read(b"\xff") is Bye.PROTOCOL


def test_a_name_with_several_addresses_and_one_that_does_not_exist(tmp_path_factory: pytest.TempPathFactory) -> None:
    network = TlsNetwork(tmp_path_factory.mktemp("certificates"))

    async def main() -> None:
        async with network.node(0) as (a, _):
            with closed_port(network, 1):
                network.move(1, ("localhost", network.addresses[1][0].port))
                with pytest.raises(PeerUnreachable, match="nothing listens at localhost") as refused:
                    await a.measure(1)
                assert refused.value.cause is FailureCause.REFUSED
            network.move(2, ("no-such-host.invalid", 7001))
            with pytest.raises(PeerUnreachable, match="cannot be looked up") as unknown:
                await a.measure(2)
            assert unknown.value.cause is FailureCause.NO_ADDRESS

    run(main())
