"""`inca relay`: joins parties that may only connect outwards, and reads nothing of what they say."""

from __future__ import annotations

import json
import logging
import re
import socket
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from inca.cli.options import OPTIONS, Place, default, options
from inca.cli.printing import print_text
from inca.errors import InvalidInput, TemporaryFault

if TYPE_CHECKING:
    from inca.network.transport.relay.options import RelayOptions

_FINGERPRINT = re.compile(r"[0-9a-f]{4}(-[0-9a-f]{4}){7}")
_LOOPBACK = "127.0.0.1"


@options(OPTIONS)
class RelayPlace(Place):
    """Where a relay listens."""

    host: Annotated[str | None, default("all of this machine, without --certificate 127.0.0.1")] = None
    port: int = 443
    path: str = "/inca"
    """The path behind the host in the relay's address, wss://HOST/PATH; all others answer 404."""
    certificate: Annotated[Path | None, Parameter(metavar="FILE")] = None
    """The relay's certificate, and those that vouch for it (PEM). Without one the relay must be behind a reverse proxy
    that ends TLS, and --name must say under which names parties reach it."""
    key: Annotated[Path | None, Parameter(metavar="FILE")] = None
    """The key of the certificate (PEM), if it is not in the same file."""
    name: Annotated[list[str], Parameter(metavar="HOST")] = field(default_factory=list)
    """A host name under which parties reach the relay; may be repeated. Default: those of its certificate."""
    trusted_proxy: Annotated[list[str], Parameter(metavar="NETWORK")] = field(default_factory=list)
    """A reverse proxy, or a network of them (10.0.0.0/8), whose X-Forwarded-For says where a connection comes from;
    otherwise all parties behind it share the limits of one origin. May be given several times."""


@options(OPTIONS)
class RelayUsers:
    """Whom a relay serves, and what it tells its operator."""

    allow: Annotated[list[str], Parameter(metavar="ROSTER|FINGERPRINT")] = field(default_factory=list)
    """Serve the parties of this roster, or the key with this fingerprint; may be given several times. SIGHUP reads the
    rosters again. Default: every party that finds the relay."""
    log_addresses: bool = False
    """Write the addresses of parties into the log; otherwise it has labels that mean nothing after a restart."""
    metrics_port: int | None = None
    """Serve /metrics (Prometheus) and /healthz on this port of 127.0.0.1."""


def relay(*, where: RelayPlace = RelayPlace(), whom: RelayUsers = RelayUsers()) -> None:
    """Join parties that may only connect outwards: both ends dial this relay, and it passes their bytes on.

    It looks like a web server: WebSocket over HTTPS, so that firewalls and proxies let it through. It holds no key of
    any party and can read nothing, as the parties' own encryption runs inside, from end to end. What it learns is who
    talks to whom, when and how much; what it can do is cut connections.

    A party proves its key to the relay, so nobody can stand in its place. Name the relay on cards (`inca node keygen
    --relay wss://HOST/PATH`), or once in the roster (`inca node roster init --relay`). Without --allow, every party
    that finds the relay may use it, within limits.

    SIGTERM and Ctrl-C let what is under way come to its end for a few seconds; parties register again as soon as
    another relay of theirs, or this one, is back. SIGHUP reads rosters and the certificate again; what cannot be read
    then stays as it was, and the log says so. The log is on stderr, a JSON object a line, without contents.

    Status 0: stopped by a signal. 2: an option, the certificate or a roster was refused. 75: the port is in use, or
    this machine cannot do it right now; start it again.

    Example:  inca relay --certificate fullchain.pem --key privkey.pem --allow roster.json

    Behind a reverse proxy:  inca relay --port 8080 --name relay.example.org --trusted-proxy 127.0.0.1
    """
    import asyncio

    from inca._base.extras import require_extra
    from inca.network.transport.relay.options import RelayOptions
    from inca.network.transport.relay.server import serve

    if where.key is not None and where.certificate is None:
        raise InvalidInput("--key must come with --certificate: a key alone proves nothing")
    if where.certificate is None and not where.name:
        raise InvalidInput(
            "--certificate FILE is required; only behind a reverse proxy that ends TLS give --name HOST instead"
        )
    if where.certificate is not None:
        _check_dates(where.certificate)
    if whom.metrics_port is not None:
        require_extra("inca relay --metrics-port", "relay")
    host = where.host or ("" if where.certificate is not None else _LOOPBACK)
    chosen = RelayOptions(
        host=host,
        port=where.port,
        certificate=where.certificate,
        key=where.key,
        path=where.path,
        names=tuple(where.name),
        allow=allowed(whom.allow),
        trusted_proxies=tuple(where.trusted_proxy),
        log_addresses=whom.log_addresses,
        metrics_port=whom.metrics_port,
    )
    _log_to_stderr()
    try:
        asyncio.run(serve(chosen, ready=lambda place: _announce(chosen, place), reload=lambda: allowed(whom.allow)))
    except OSError as error:
        _refuse_place(host, error)


def allowed(entries: list[str]) -> frozenset[str] | None:
    """Return the fingerprints of the keys that entries of --allow name; None if there are no entries.

    >>> sorted(allowed(["722a-bd12-e99a-5367-f375-aeb9-672a-8e07"]))
    ['722a-bd12-e99a-5367-f375-aeb9-672a-8e07']
    """
    if not entries:
        return None
    from inca.network.membership.roster import read_roster

    fingerprints = set()
    for entry in entries:
        if _FINGERPRINT.fullmatch(entry):
            fingerprints.add(entry)
            continue
        if not Path(entry).exists():
            raise InvalidInput(f"--allow must be a file with a roster, or a fingerprint (2a4f-...), got {entry!r}")
        of_roster = {card.fingerprint for card in read_roster(entry).parties}
        if not of_roster:
            raise InvalidInput(f"--allow {entry}: the roster has no parties; add them with inca node roster add")
        fingerprints |= of_roster
    return frozenset(fingerprints)


def _check_dates(path: Path) -> None:
    """Refuse a certificate that no party would accept now; whether it can be used at all is seen when it is loaded."""
    from datetime import UTC, datetime

    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
    except OSError as error:
        raise InvalidInput(f"--certificate {path} cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise InvalidInput(f"--certificate {path}: it must be a certificate in PEM") from None
    now, first, last = datetime.now(UTC), certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if now > last:
        raise InvalidInput(f"--certificate {path}: it expired on {last:%Y-%m-%d}; renew it")
    if now < first:
        raise InvalidInput(f"--certificate {path}: it is not valid before {first:%Y-%m-%d}; check this machine's clock")


def _announce(chosen: RelayOptions, place: tuple[str, int]) -> None:
    """Say where it listens, and for whom, once it does."""
    host, port = place
    whom = "every party that finds it" if chosen.allow is None else f"{len(chosen.allow)} parties"
    print_text(f"The relay listens on {f'[{host}]' if ':' in host else host}:{port}, path {chosen.path}, for {whom}.")


def _refuse_place(host: str, error: OSError) -> None:
    """Say why it cannot listen: what only other options mend is bad input, all else may pass."""
    reason = error.strerror or str(error)
    if isinstance(error, PermissionError):
        raise InvalidInput(
            f"cannot listen: {reason}; ports below 1024 need the capability CAP_NET_BIND_SERVICE (deploy/relay has a "
            "unit that gives it), or choose another --port"
        ) from None
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_NONAME:
        raise InvalidInput(f"--host {host}: {reason}; name this machine, or one of its addresses") from None
    raise TemporaryFault(f"cannot listen: {reason}; stop what else listens there, then start it again") from None


class _JsonLines(logging.Formatter):
    """Adds the time to lines that are JSON objects already."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = json.loads(record.getMessage())
        return json.dumps({"time": round(record.created, 3), **fields})


def _log_to_stderr() -> None:
    handler, log = logging.StreamHandler(), logging.getLogger("inca.relay")
    handler.setFormatter(_JsonLines())
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False
