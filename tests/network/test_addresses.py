"""Addresses: what is read is what was written, and nothing else is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inca.errors import InvalidInput
from inca.network.addresses import Address

HOSTS = st.one_of(
    st.from_regex(r"[a-z][a-z0-9-]{0,20}[a-z0-9](\.[a-z]{2,8})?", fullmatch=True),
    st.ip_addresses().map(str).filter(lambda host: host not in ("0.0.0.0", "::")),
)
PATHS = st.none() | st.from_regex(r"/([A-Za-z0-9._~-]{1,9}(/[a-z]{1,5})?)?", fullmatch=True)


@given(HOSTS, st.integers(1, 65535), PATHS)
def test_what_is_written_is_read_as_the_same(host: str, port: int, path: str | None) -> None:
    address = Address(host, port, path)
    again = Address.parse(str(address))
    assert again == address
    assert again.place == address.place
    assert str(again) == str(address)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "anna",
        "anna:",
        "anna:0",
        "anna:65536",
        "anna:7001/",
        "0.0.0.0:7001",
        "[::]:7001",
        "::1:7001",
        "ws://relay.example.org/inca",
        "https://relay.example.org/inca",
        "wss://",
        "wss:///inca",
        "wss://me@relay.example.org/",
        "wss://me:word@relay.example.org/",
        "wss://relay.example.org/inca?key=1",
        "wss://relay.example.org/inca#1",
        "wss://relay.example.org/a b",
        "wss://relay.example.org:x/",
        "wss://-relay/",
        "anna:7001\n",
        7001,
        None,
    ],
)
def test_other_texts_are_refused_by_name(text: object) -> None:
    with pytest.raises(InvalidInput, match=r"address|host|port|path"):
        Address.parse(text)  # type: ignore[arg-type]


def test_spellings_of_one_place_are_the_same_place() -> None:
    assert Address.parse("Anna.example.org.:7001").place == Address.parse("anna.example.org:7001").place
    assert Address.parse("[::0001]:7001").place == Address.parse("[::1]:7001").place
    assert Address.parse("wss://relay.example.org").place == Address.parse("wss://relay.example.org:443/").place
    assert Address.parse("wss://relay.example.org:8443").port == 8443
