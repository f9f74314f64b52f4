"""A peer whose messages the users of a transport object to is refused for a while, over real TLS."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from helpers.transports import Raw, TlsNetwork, packed, raw, run, until
from inca.errors import InvalidInput
from inca.network.transport.failures import FailureCause
from inca.network.transport.frames import DATA, Bye

pytestmark = pytest.mark.real_time
BAD = b"bad"


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> TlsNetwork:
    return TlsNetwork(tmp_path_factory.mktemp("certificates"))


async def last_word(other: Raw) -> Bye:
    """Read to the goodbye, past whatever else was said."""
    while True:
        kind, body = await other.frame()
        if kind not in (DATA,):
            return Bye(body[0])


def test_after_so_many_violations_a_peer_is_cut_off_and_nothing_more_of_it_is_heard(network: TlsNetwork) -> None:
    async def main() -> None:
        async with (
            network.node(0, max_violations=3, penalty_s=60.0) as (a, log),
            network.node(1) as (b, log_b),
            network.node(2) as (c, _),
        ):
            counts: list[int] = []

            def judge(peer: int, frame: bytes) -> None:
                if frame == BAD:
                    counts.append(a.report_violation(peer, "sent an item that nobody signed"))

            log.reply = judge
            c.send(0, b"good")
            await log.reach(1)
            async with raw(a.address, network.client(1)) as other:
                await other.greet(1, secrets.token_bytes(16))
                other.writer.write(packed(DATA, b"fine") + 50 * packed(DATA, BAD))
                assert await last_word(other) is Bye.PENALTY
            assert log.frames == [(2, b"good"), (1, b"fine")] + 3 * [(1, BAD)] and counts == [1, 2, 3]
            assert log.complaints == 3 * ["party 1 sent an item that nobody signed"]
            assert {failure.cause for _, failure in log.violations} == {FailureCause.VIOLATION}
            assert [(peer, failure.cause) for peer, failure in log.losses] == [(1, FailureCause.PENALTY)]
            assert a.refuses(1) and not a.refuses(2)
            # Neither side gets a new connection, and others are heard as before.
            async with raw(a.address, network.client(1)) as other:
                assert await other.bye() is Bye.PENALTY
            b.send(0, b"let me in", "refused")
            a.send(1, b"no", "kept")
            c.send(0, b"still good")
            await until(lambda: log.downs and log_b.unsent_tokens and (2, b"still good") in log.frames)
            assert log.downs[0][1].cause is FailureCause.PENALTY and log.unsent_tokens == ["kept"]
            assert a.connected == {2} and (1, b"let me in") not in log.frames

    run(main())


def test_a_few_violations_cost_a_peer_nothing(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0, max_violations=3) as (a, log), network.node(1) as (b, _):
            b.send(0, b"0")
            await log.reach(1)
            assert [a.report_violation(1, "erred") for _ in range(2)] == [1, 2]
            b.send(0, b"1")
            await log.reach(2)
            assert a.connected == {1} and not log.losses and not a.refuses(1)

    run(main())


def test_after_the_penalty_a_peer_is_heard_again(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0, max_violations=1, penalty_s=1.0) as (a, log), network.node(1) as (b, log_b):
            b.send(0, b"0")
            await log.reach(1)
            a.report_violation(1, "erred")
            await until(lambda: log_b.losses)
            assert log_b.losses[0][1].cause is FailureCause.PENALTY
            while (1, b"again") not in log.frames:
                b.send(0, b"again")
                await asyncio.sleep(0.05)
            assert not a.refuses(1)

    run(main())


def test_a_dial_that_is_under_way_is_given_up(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0, max_violations=1) as (a, log), network.node(1):
            a.send(1, b"x", "token")
            a.report_violation(1, "erred")
            await until(lambda: log.downs)
            assert log.downs[0][1].cause is FailureCause.PENALTY and log.unsent_tokens == ["token"]
            assert not a.connected and not log.ups

    run(main())


def test_a_refused_peer_that_comes_again_and_again_is_let_in_slowly_and_others_at_its_address_at_once(
    network: TlsNetwork,
) -> None:
    """Each time costs a handshake of TLS: those are bounded, too."""

    async def main() -> None:
        async with network.node(0, max_violations=3, penalty_s=60.0) as (a, log):
            context = network.client(1)
            async with raw(a.address, context) as other:
                await other.greet(1, b"l" * 16)
                await until(lambda: a.connected == {1})
                for _ in range(3):
                    a.report_violation(1, "erred")
                assert await other.bye() is Bye.PENALTY
            answered = 0
            for _ in range(60):
                try:
                    async with raw(a.address, context) as other:
                        answered += await other.bye() is Bye.PENALTY
                except (OSError, asyncio.IncompleteReadError):
                    await asyncio.sleep(0.001)
            assert 3 <= answered < 30
            await until(lambda: any("127.0.0.1 made" in str(fields.get("reason")) for _, fields in log.log))
            async with network.node(2) as (b, _):
                while not a.connected:  # as a stranger from there it is let in slowly, too
                    b.send(0, b"hello")
                    await asyncio.sleep(0.05)
                for _ in range(5):  # and then, from there, whoever comes
                    async with raw(a.address, context) as other:
                        assert await other.bye() is Bye.PENALTY

    run(main())


def test_nobody_reports_itself_or_a_stranger(network: TlsNetwork) -> None:
    async def main() -> None:
        async with network.node(0) as (a, _):
            for nobody in (0, 5, -1):
                with pytest.raises(InvalidInput):
                    a.report_violation(nobody, "erred")

    run(main())
