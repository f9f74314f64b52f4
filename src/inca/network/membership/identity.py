"""Who a party is: an Ed25519 key, the self-signed certificate that names it, and the public card that others pin.

There is no authority that vouches for anyone: parties exchange cards, compare fingerprints over a channel they trust
(by telephone, say), and from then on accept exactly these certificates. The addresses on a card are signed by its key,
so that whoever passes the card on cannot send the others elsewhere.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec

from inca._base.extras import importing
from inca._base.files import write_json
from inca._base.validation import file_path, refuse
from inca.errors import InvalidInput
from inca.network.addresses import Address, read_addresses
from inca.network.keys import fingerprint_of, raw_key, signed_text, verifies

with importing("inca.network", extra="network"):
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CARD_FORMAT = "inca-card/3"
KEY_FILE, CARD_FILE = "identity.pem", "card.json"

_BOTH_ENDS = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)
_FROM, _UNTIL = datetime(2000, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
Contents = TypeVar("Contents")
_NOT_A_PARTY = "the certificate is not a self-signed one of a party"


class Card(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="format", tag=CARD_FORMAT):
    """What the others need to know of a party.

    The certificate must be self-signed, which proves that whoever made the card holds the key, bear the card's name,
    and be no authority for further certificates. The key must have signed the addresses, too: a card says where its
    owner wants to be reached, whoever has passed it on.

    Attributes:
        name: The party's name.
        addresses: Where the others reach it, in order of preference: HOST:PORT, then wss://HOST/PATH of relays; at
            most 8. It may have none in a roster that names relays for all.
        certificate: Its certificate (DER).
        signature: Of name and addresses, by the certificate's key; `Identity.card` makes it.

    Example:
        >>> card = Identity.create("anna").card("anna.example.org:7001", "wss://relay.example.org/inca")
        >>> card.addresses
        ('anna.example.org:7001', 'wss://relay.example.org/inca')
        >>> msgspec.structs.replace(card, addresses=("anna.example.org:7002",))
        Traceback (most recent call last):
            ...
        inca.errors.InvalidInput: the addresses of anna (anna.example.org:7002) must be signed by its key, got another \
signature: the card was changed on its way, so ask anna for it again
    """

    name: str
    addresses: tuple[str, ...]
    certificate: bytes
    signature: bytes

    def __post_init__(self) -> None:
        """Refuse addresses that cannot be reached or are not signed, and a certificate that is not this party's."""
        check_name("name", self.name)
        read_addresses("addresses", self.addresses)
        certified_name = _parse(self.certificate)[0]
        if certified_name != self.name:
            refuse("the name in the certificate", certified_name, f"the card's name ({self.name!r})")
        if not verify(self.certificate, _signed_text(self.name, self.addresses), self.signature):
            raise InvalidInput(
                f"the addresses of {self.name} ({', '.join(self.addresses) or 'none'}) must be signed by its key, got "
                f"another signature: the card was changed on its way, so ask {self.name} for it again"
            )

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the certificate's key."""
        return fingerprint(self.certificate)


@dataclass(frozen=True, eq=False)
class Identity:
    """A party's private key and the certificate (DER) that names it; `create` makes one, `read` finds it again.

    Example:
        >>> alice = Identity.create("alice")
        >>> verify(alice.certificate, b"message", alice.sign(b"message"))
        True
    """

    name: str
    certificate: bytes = field(repr=False)
    key: Ed25519PrivateKey = field(repr=False)

    @classmethod
    def create(cls, name: str) -> Identity:
        """Draw a new key and sign a certificate for it, good for both ends of a TLS connection; in memory only.

        The name of the party has 1 to 64 bytes of printable text.
        """
        check_name("name", name)
        key = Ed25519PrivateKey.generate()
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            # The roster decides whom to trust; a date would only make runs fail, on machines with wrong clocks first.
            .not_valid_before(_FROM)
            .not_valid_after(_UNTIL)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(_BOTH_ENDS), critical=False)
        )
        return cls(name, builder.sign(key, None).public_bytes(Encoding.DER), key)

    def card(self, *addresses: Address | str) -> Card:
        """Return the public card of this party, which is reached at these addresses; they are signed.

        Example:
            >>> Identity.create("anna").card("Anna.Example.org:7001", "wss://relay.example.org:443").addresses
            ('anna.example.org:7001', 'wss://relay.example.org')
        """
        texts = tuple(str(Address.parse(str(address))) for address in addresses)
        signature = self.sign(_signed_text(self.name, texts))
        return Card(name=self.name, addresses=texts, certificate=self.certificate, signature=signature)

    def sign(self, message: bytes) -> bytes:
        """Return a signature that `verify` accepts for this certificate and message."""
        return self.key.sign(signed_text(message))

    def write(self, folder: str | Path, *addresses: Address | str) -> Card:
        """Write the private `identity.pem` and the public `card.json`, both or none; nothing is ever overwritten.

        The folder is made if it is not there; one that others can write to is refused.
        """
        card = self.card(*addresses)
        shown = json.dumps(msgspec.to_builtins(card), indent=1) + "\n"
        secret = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        public = x509.load_der_x509_certificate(self.certificate).public_bytes(Encoding.PEM)
        home = Path(folder)
        written: list[Path] = []
        try:
            new = _make_private(home)
            try:
                for name, content, mode in ((KEY_FILE, secret + public, 0o600), (CARD_FILE, shown.encode(), 0o644)):
                    _create(home / name, content, mode)
                    written.append(home / name)
            except BaseException:
                for path in written:
                    path.unlink()
                if new:
                    home.rmdir()
                raise
        except OSError as error:
            raise InvalidInput(f"{folder} cannot be written: {error.strerror or error}") from None
        return card

    def write_card(self, folder: str | Path, *addresses: Address | str) -> Card:
        """Write a `card.json` with other addresses in the place of the one that is there: the party has moved."""
        card = self.card(*addresses)
        write_json(Path(folder) / CARD_FILE, msgspec.to_builtins(card), indent=1)
        return card

    @classmethod
    def read(cls, folder: str | Path) -> Identity:
        """Read an identity that `write` wrote; a key that others can read is no secret and is refused."""
        path = Path(folder) / KEY_FILE
        try:
            with path.open("rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                text = file.read()
        except OSError as error:
            raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None
        if mode & 0o077:
            _refuse_mode(path, mode, "0600, for its owner alone")
        try:
            key = load_pem_private_key(text, None)
            certificate = x509.load_pem_x509_certificate(text).public_bytes(Encoding.DER)
            name, public = _parse(certificate)
        except (ValueError, TypeError, UnsupportedAlgorithm):  # InvalidInput is a ValueError, too
            raise InvalidInput(f"{path} is damaged: it does not hold an Ed25519 key and its certificate") from None
        if not isinstance(key, Ed25519PrivateKey) or key.public_key() != public:
            raise InvalidInput(f"{path} is damaged: its certificate is not that of its key")
        return cls(name, certificate, key)


def read_card(path: str | Path) -> Card:
    """Read a card that `Identity.write` wrote."""
    return read_file(path, CARD_FORMAT, lambda fields: msgspec.convert(fields, Card))


def read_file(path: str | Path, format_: str, convert: Callable[[dict[str, Any]], Contents]) -> Contents:
    """Return what a JSON file of a format says, or refuse it; whatever else is in a file may be private."""
    place = file_path("path", path)
    try:
        fields = msgspec.json.decode(place.read_bytes())
        name = fields.get("format") if isinstance(fields, dict) else None
        if name != format_:
            refuse("format", name, format_)
        return convert(fields)
    except (msgspec.MsgspecError, InvalidInput, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"{path} is not a valid {format_} file: {error}") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None


def verify(certificate: bytes, message: bytes, signature: bytes) -> bool:
    """Return whether the holder of the certificate's key signed the message with `Identity.sign`."""
    try:
        return verifies(raw_key(_parse(certificate)[1]), message, signature)
    except InvalidInput:
        return False


def fingerprint(certificate: bytes) -> str:
    """Return what two people compare to be sure of a certificate's key."""
    return fingerprint_of(_parse(certificate)[1])


def _signed_text(name: str, addresses: tuple[str, ...]) -> bytes:
    """Return what is signed of a card: a label, and name and addresses as a JSON list, without spaces and in ASCII."""
    return f"{CARD_FORMAT}\0{json.dumps([name, addresses], separators=(',', ':'))}".encode()


def check_name(what: str, name: str) -> str:
    """Return a name that can be shown to people and put in a certificate, or refuse it."""
    if not isinstance(name, str) or not name.isprintable() or name != name.strip() or not 1 <= len(name.encode()) <= 64:
        refuse(what, name, "1 to 64 bytes of printable text without spaces around it")
    return name


def _refuse_mode(path: Path, mode: int, must_be: str) -> NoReturn:
    """Refuse a file or folder that others can read or change."""
    raise InvalidInput(f"the mode of {path} must be {must_be}, got {mode:04o}") from None


@lru_cache(maxsize=2**14)
def _parse(certificate: bytes) -> tuple[str, Ed25519PublicKey]:
    """Return the name and the public key in a certificate, or refuse it; kept, as parties verify many signatures."""
    try:
        parsed = x509.load_der_x509_certificate(certificate)
        names = parsed.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        public = parsed.public_key()
        parsed.verify_directly_issued_by(parsed)
        authority = parsed.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (ValueError, TypeError, UnsupportedAlgorithm, InvalidSignature, x509.ExtensionNotFound) as error:
        raise InvalidInput(f"{_NOT_A_PARTY}: {error or 'bad signature'}") from None
    if not isinstance(public, Ed25519PublicKey) or authority or len(names) != 1:
        raise InvalidInput(f"{_NOT_A_PARTY}: it must have an Ed25519 key with one name, and be no authority")
    return str(names[0].value), public


def _make_private(folder: Path) -> bool:
    """Make sure of a folder in which nobody else can replace files; return whether it is new."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if (mode := stat.S_IMODE(folder.stat().st_mode)) & 0o022:
            _refuse_mode(folder, mode, "0700 or 0755, so that only its owner can write to it")
        return False
    return True


def _create(path: Path, content: bytes, mode: int) -> None:
    """Write a new file whole, with these permissions from its first moment on."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        advice = "`inca node card` gives it other addresses"
        raise InvalidInput(f"{path} is there already, and an identity is never overwritten ({advice})") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink()
        raise
