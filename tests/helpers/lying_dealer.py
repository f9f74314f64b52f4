"""A party that deals garbage: shares of its deposit that do not fit together, for some trustees or for all."""

from __future__ import annotations

import random
from typing import Any

import msgspec

from inca.network.protocol.messages import Item
from inca.network.protocol.opening.deposits import Deposit
from inca.network.protocol.opening.shamir import SHARE_BYTES
from inca.network.protocol.party import Party
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import Kind, Sign, Verify


class LyingDealer(Party):
    """Keeps all other rules."""

    def __init__(self, session: SessionConfig, me: int, *, sign: Sign, verify: Verify, rng: random.Random) -> None:
        super().__init__(session, me, sign=sign, verify=verify, rng=rng)
        honest = self.signed_items.sign

        def lying(kind: Kind, body: Any, sealed: bytes = b"") -> Item:
            if isinstance(body, Deposit):
                count = len(body.shares) // SHARE_BYTES
                spared = SHARE_BYTES * rng.randint(0, count - 1)  # those after it get garbage
                garbage = body.shares[:spared] + rng.randbytes(len(body.shares) - spared)
                body = msgspec.structs.replace(body, shares=garbage)
            return honest(kind, body, sealed)

        self.signed_items.sign = lying  # type: ignore[method-assign]
