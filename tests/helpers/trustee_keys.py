"""The secrets from which parties in tests deal their deposits, and the keys by which they are trustees."""

from __future__ import annotations

from functools import cache

from inca.network.protocol.opening import cohort_keys
from inca.network.protocol.opening.cohort_keys import COHORTS, CohortSecrets
from inca.network.protocol.opening.deposits import Deposit


def sealing(me: int) -> bytes:
    return bytes([me, 3]) * 16


def secrets_of(me: int, cohort: int = 0) -> CohortSecrets:
    return CohortSecrets(sealing(me), 0).advanced(cohort)


@cache
def keys_of(me: int) -> list[bytes]:
    """The public keys in a party's digest, one for each cohort."""
    return secrets_of(me).public_keys(COHORTS)


def in_common(deposit: Deposit, private: bytes) -> bytes:
    """What a trustee's key and the key of a deposit have in common."""
    return cohort_keys.shared_secrets(private, [deposit.ephemeral])[0]
