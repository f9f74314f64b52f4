"""Where a party is reached: `host:port`, or a relay that both sides dial, `wss://host/path`.

A relay (`inca relay`) passes bytes between parties that may only dial out. At it, a party's name is the fingerprint of
its key, so that several parties may have the same relay's address.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn
from urllib.parse import urlsplit

from inca._base.validation import refuse
from inca.errors import InvalidInput

_HTTPS_PORT = 443
_LABEL = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*/?")
_FORM = "HOST:PORT, or wss://HOST/PATH of a relay"
MOST_ADDRESSES = 8
"""So many a party may have: each may be dialled in turn, and it registers at each relay among them."""


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port, and of a relay the path behind them; None if the party itself listens there.

    Example:
        >>> Address("anna.example.org", 7001), str(Address("::1", 7001))
        (Address('anna.example.org:7001'), '[::1]:7001')
        >>> Address("relay.example.org", 443, "/inca")
        Address('wss://relay.example.org/inca')
    """

    host: str
    port: int
    path: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be reached."""
        _check_host(self.host)
        if isinstance(self.port, bool) or not isinstance(self.port, int) or not 1 <= self.port <= 65535:
            refuse("port", self.port, "an integer from 1 to 65535")
        if self.path is not None and not _PATH.fullmatch(self.path):
            refuse("the path of a relay", self.path, "letters, digits and ._~- between slashes, without a query")

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read an address as `str` writes it.

        Example:
            >>> Address.parse("wss://relay.example.org").port, Address.parse("10.0.0.1:7001").relayed
            (443, False)
        """
        if not isinstance(text, str) or not text.isascii() or re.search(r"\s", text):  # urlsplit drops some of these
            _refuse_form(text)
        relayed = text.startswith("wss://")
        try:
            parts = urlsplit(text if relayed else f"//{text}")
            host, port = parts.hostname or "", parts.port
        except ValueError:
            _refuse_form(text)
        if parts.username is not None or parts.query or parts.fragment or not (relayed or parts.path == ""):
            _refuse_form(text)
        if port is None:
            if not relayed:
                _refuse_form(text)
            port = _HTTPS_PORT
        try:
            address = cls(host, port, parts.path or "/" if relayed else None)
        except InvalidInput as error:
            raise InvalidInput(f"the address {text!r}: {error}") from None
        return address

    @property
    def relayed(self) -> bool:
        """Whether this is a relay's address and not the party's own."""
        return self.path is not None

    @property
    def place(self) -> tuple[str, int, str | None]:
        """The address in one spelling, to compare."""
        try:
            return str(ipaddress.ip_address(self.host)), self.port, self.path
        except ValueError:
            return self.host.rstrip(".").lower(), self.port, self.path

    @property
    def authority(self) -> str:
        """Host and port as they stand in a URL; without the port where it is that of HTTPS and of a relay."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.relayed and self.port == _HTTPS_PORT else f"{host}:{self.port}"

    def __str__(self) -> str:
        """Return it as people write it."""
        return f"wss://{self.authority}{'' if self.path == '/' else self.path}" if self.relayed else self.authority

    def __repr__(self) -> str:
        """Return it as an argument of `parse` would be."""
        return f"Address({str(self)!r})"


def read_addresses(what: str, texts: Sequence[str]) -> tuple[Address, ...]:
    """Return addresses in order of preference, or refuse a list that is not one; each is as `str` writes it.

    What is signed has one spelling so. A party itself is tried before the relays that lead to it.

    Example:
        >>> read_addresses("addresses", ["anna.example.org:7001", "wss://relay.example.org/inca"])
        (Address('anna.example.org:7001'), Address('wss://relay.example.org/inca'))
    """
    if len(texts) > MOST_ADDRESSES:
        refuse(f"the number of {what}", len(texts), f"at most {MOST_ADDRESSES}")
    addresses = tuple(map(Address.parse, texts))
    places: set[object] = set()
    for text, address in zip(texts, addresses, strict=True):
        if text != str(address):
            refuse(f"an entry of {what}", text, f"written as {str(address)!r}")
        if address.place in places:
            refuse(what, text, "of different places, not twice of one")
        places.add(address.place)
    if sorted(addresses, key=lambda address: address.relayed) != list(addresses):
        refuse(what, ", ".join(texts), "direct ones first, then those of relays")
    return addresses


def _refuse_form(text: object) -> NoReturn:
    refuse("an address", text, _FORM)


def _check_host(host: str) -> None:
    """Refuse what is neither an IP address nor a host name, and the addresses that mean "here, wherever that is"."""
    try:
        unreachable = ipaddress.ip_address(host).is_unspecified
    except ValueError:
        labels = host.rstrip(".").split(".") if isinstance(host, str) else [""]
        unreachable = len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels)
    if unreachable:
        refuse("host", host, "a host name or an IP address that the other parties can reach")
