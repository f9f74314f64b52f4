"""Who may register and call at a relay: claims made by hand, honest and not."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from helpers.blind_relays import RelayLog, RelayNetwork, Visitor, quiet, registered
from helpers.transports import run, until
from inca.network.transport.relay.messages import (
    CallJoined,
    ClaimRefused,
    Contested,
    Declined,
    Incoming,
    PresenceQuery,
    PresenceReply,
    Registered,
    RelayClaim,
    RelayRefusal,
    claim_text,
    from_party,
    from_relay,
)

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> RelayNetwork:
    return RelayNetwork(tmp_path_factory.mktemp("certificates"))


def test_who_proves_a_key_is_registered_under_its_fingerprint(network: RelayNetwork) -> None:
    async def main() -> None:
        async with network.relay() as relay, network.visitor(relay) as anna:
            await anna.register(network.parties[0])
            assert set(relay.switchboard.registered) == {network.names[0]}

    run(main())


def test_registration_for_the_key_of_another_is_refused(network: RelayNetwork) -> None:
    async def main() -> None:
        async with network.relay() as relay, network.visitor(relay) as liar:
            claim = liar.claim(network.stranger)
            stolen = msgspec.structs.replace(claim, key=network.parties[0].raw_key)
            assert await liar.refused(stolen) is RelayRefusal.PROOF
            assert not relay.switchboard.registered

    run(main())


def test_a_signature_for_anything_else_is_refused(network: RelayNetwork) -> None:
    anna = network.parties[0]

    async def main() -> None:
        async with network.relay() as relay:
            async with network.visitor(relay) as first, network.visitor(relay) as second:
                replayed = first.claim(anna)
                assert await second.refused(replayed) is RelayRefusal.PROOF  # another challenge
            for change in ({"about": "other"}, {"kind": "answer"}, {"authority": f"localhost:{relay.address[1]}"}):
                async with network.visitor(relay) as visitor:
                    changed = msgspec.structs.replace(visitor.claim(anna), **change)
                    assert await visitor.refused(changed) is RelayRefusal.PROOF
            async with network.visitor(relay) as visitor:
                assert (
                    await visitor.refused(msgspec.structs.replace(visitor.claim(anna), key=b"x")) is RelayRefusal.PROOF
                )
            async with network.visitor(relay) as visitor:
                text = claim_text("register", visitor.address.authority, visitor.nonce, "")
                bare = RelayClaim("register", anna.raw_key, visitor.address.authority, "", anna.key.sign(text))
                assert await visitor.refused(bare) is RelayRefusal.PROOF  # not signed as `Identity.sign` does

    run(main())


def test_a_signature_for_another_relay_is_refused(network: RelayNetwork) -> None:
    """A relay that anna dials as evil.example passes the challenge of another one on to her."""
    anna = network.parties[0]

    async def main() -> None:
        async with network.relay() as relay, network.visitor(relay) as liar:
            text = claim_text("register", "evil.example", liar.nonce, "x")
            signed = RelayClaim("register", anna.raw_key, "evil.example", "x", anna.sign(text))
            assert await liar.refused(signed) is RelayRefusal.NAME
        async with network.relay() as relay, network.visitor(relay) as liar:
            renamed = msgspec.structs.replace(signed, authority=liar.address.authority)
            assert await liar.refused(renamed) is RelayRefusal.PROOF

    run(main())


def test_the_names_of_a_relay_are_those_of_its_certificate_or_given(network: RelayNetwork) -> None:
    anna = network.parties[0]

    async def main() -> None:
        async with network.relay() as relay, network.visitor(relay, host="localhost") as visitor:
            await visitor.register(anna)
        async with network.relay(names=("relay.example.org",)) as relay, network.visitor(relay) as visitor:
            assert await visitor.refused(visitor.claim(anna)) is RelayRefusal.NAME
        async with network.relay(names=("127.0.0.1",)) as relay, network.visitor(relay) as visitor:
            await visitor.register(anna)

    run(main())


def test_the_allow_list_is_for_registering_calling_and_answering_and_can_change(network: RelayNetwork) -> None:
    anna, bert = network.parties[:2]

    async def main() -> None:
        async with network.relay(allow=frozenset({anna.fingerprint})) as relay, network.visitor(relay) as visitor:
            await visitor.register(anna)
            for claim in ("register", "dial", "answer"):
                async with network.visitor(relay) as other:
                    assert await other.refused(other.claim(bert, claim, anna.fingerprint)) is RelayRefusal.NOT_ALLOWED
            relay.reload(lambda: frozenset({bert.fingerprint}))
            assert await visitor.ended() == 1000  # anna is cut off
            async with network.visitor(relay) as other:
                await other.register(bert)

    run(main())


def test_a_second_registration_is_refused_while_the_first_is_alive_and_both_are_told(network: RelayNetwork) -> None:
    anna = network.parties[0]

    async def main() -> None:
        async with (
            network.relay(limits={"give_way_s": 0.3}) as relay,
            network.visitor(relay) as first,
            network.visitor(relay) as second,
        ):
            await first.register(anna)
            told = asyncio.create_task(first.hear())  # reads, and so answers pings
            assert await second.refused(second.claim(anna)) is RelayRefusal.TAKEN
            assert isinstance(await told, Contested)
            assert len(relay.switchboard.registered) == 1

    run(main())


def test_the_first_gives_way_if_it_is_dead(network: RelayNetwork) -> None:
    anna = network.parties[0]

    async def main() -> None:
        async with (
            network.relay(limits={"give_way_s": 0.3}) as relay,
            network.visitor(relay) as first,
            network.visitor(relay) as second,
        ):
            await first.register(anna)
            first.socket.transport.pause_reading()  # its machine is gone without a word
            await second.register(anna)
            first.socket.transport.resume_reading()
            await first.ended()
            assert relay.switchboard.registered[anna.fingerprint].open

    run(main())


def test_the_same_process_gets_back_at_once(network: RelayNetwork) -> None:
    anna = network.parties[0]

    async def main() -> None:
        async with (
            network.relay(limits={"give_way_s": 1e6}) as relay,
            network.visitor(relay) as first,
            network.visitor(relay) as second,
        ):
            assert isinstance(await first.ask(first.claim(anna, about="instance")), Registered)
            assert isinstance(await second.ask(second.claim(anna, about="instance")), Registered)
            await first.ended()

    run(main())


async def call(caller: Visitor, callee: Visitor, network: RelayNetwork, by: int = 0, to: int = 1) -> Incoming:
    await caller.say(caller.claim(network.parties[by], "dial", network.names[to]))
    incoming = await callee.hear()
    assert isinstance(incoming, Incoming)
    return incoming


def test_a_call_is_answered_by_whom_it_is_for_alone_and_then_bytes_are_passed_on(network: RelayNetwork) -> None:
    async def main() -> None:
        async with network.relay() as relay, network.visitor(relay) as bert, network.visitor(relay) as anna:
            await bert.register(network.parties[1])
            incoming = await call(anna, bert, network)
            assert network.names[0] not in incoming.origin and "127.0.0.1" not in incoming.origin
            async with network.visitor(relay) as liar:
                theft = liar.claim(network.parties[2], "answer", incoming.ticket)
                assert await liar.refused(theft) is RelayRefusal.NOT_REGISTERED
            async with network.visitor(relay) as end:
                answer = end.claim(network.parties[1], "answer", incoming.ticket)
                assert isinstance(await end.ask(answer), CallJoined) and isinstance(await anna.hear(), CallJoined)
                await anna.socket.send(b"there")
                await end.socket.send(b"back")
                assert (await end.socket.recv(), await anna.socket.recv()) == (b"there", b"back")
                await anna.socket.close()
                assert await end.ended() == 1000
            async with network.visitor(relay) as late:
                assert await late.refused(late.claim(network.parties[1], "answer", incoming.ticket))
            await until(lambda: not relay.switchboard.data and not relay.switchboard._pairs)

    run(main())


def test_calls_that_come_to_nothing(network: RelayNetwork) -> None:
    async def main() -> None:
        async with network.relay(limits={"callee_timeout_s": 0.3}) as relay, network.visitor(relay) as bert:
            async with network.visitor(relay) as anna:
                early = anna.claim(network.parties[0], "dial", network.names[1])
                assert await anna.refused(early) is RelayRefusal.NOT_REGISTERED
            await bert.register(network.parties[1])
            async with network.visitor(relay) as anna:
                incoming = await call(anna, bert, network)
                await bert.say(Declined(incoming.ticket))
                assert await anna.hear() == ClaimRefused(RelayRefusal.DECLINED)
            async with network.visitor(relay) as anna:
                await call(anna, bert, network)
                assert await anna.hear() == ClaimRefused(RelayRefusal.NO_ANSWER)
            async with network.visitor(relay) as anna:
                incoming = await call(anna, bert, network)
            await until(lambda: not relay.switchboard.calls)  # the caller has gone
            async with network.visitor(relay) as end:
                late = end.claim(network.parties[1], "answer", incoming.ticket)
                assert await end.refused(late) is RelayRefusal.NOT_REGISTERED
            async with network.visitor(relay) as anna:
                own = anna.claim(network.parties[1], "dial", network.names[1])
                assert await anna.refused(own) is RelayRefusal.NOT_REGISTERED
            await bert.say(Declined("no such call"))
            board = relay.switchboard
            await until(lambda: not (board._waiting or board._per_key or board._per_origin or board._pairs))

    run(main())


def test_who_is_registered_may_ask_who_else_is(network: RelayNetwork) -> None:
    async def main() -> None:
        async with network.relay() as relay, network.visitor(relay) as anna, network.visitor(relay) as bert:
            await anna.register(network.parties[0])
            bert_is = network.names[1]
            assert await anna.ask(PresenceQuery(bert_is)) == PresenceReply(bert_is, False)
            await bert.register(network.parties[1])
            assert await anna.ask(PresenceQuery(bert_is)) == PresenceReply(bert_is, True)
            async with network.visitor(relay) as stranger:
                await stranger.say(PresenceQuery(bert_is))
                assert await stranger.ended() == 1002

    run(main())


def test_somebody_else_cannot_decline_a_call(network: RelayNetwork) -> None:
    async def main() -> None:
        async with (
            network.relay() as relay,
            network.visitor(relay) as bert,
            network.visitor(relay) as cleo,
            network.visitor(relay) as anna,
        ):
            await bert.register(network.parties[1])
            await cleo.register(network.parties[2])
            incoming = await call(anna, bert, network)
            await cleo.say(Declined(incoming.ticket))
            await quiet(0.1)
            assert relay.switchboard.calls

    run(main())


def test_limits_of_a_pair_a_callee_and_a_key(network: RelayNetwork) -> None:
    async def full(relay_limits: dict[str, int], allow: frozenset[str] | None, others: list[int]) -> list[bool]:
        """Return which dials to bert wait, made by these parties one after the other."""
        async with network.relay(limits=relay_limits, allow=allow) as relay, network.visitor(relay) as bert:
            await bert.register(network.parties[1])
            waiting = []
            async with asyncio.TaskGroup() as group:
                stop = asyncio.Event()

                async def dial(by: int, done: asyncio.Event) -> None:
                    async with network.visitor(relay) as visitor:
                        await visitor.say(visitor.claim(network.parties[by], "dial", network.names[1]))
                        answer = asyncio.create_task(visitor.hear())
                        heard = asyncio.create_task(bert.hear())
                        await asyncio.wait({answer, heard}, return_when=asyncio.FIRST_COMPLETED)
                        waiting.append(heard.done())
                        if answer.done():
                            assert answer.result() == ClaimRefused(RelayRefusal.FULL)
                        for task in (answer, heard):
                            task.cancel()
                        await asyncio.gather(answer, heard, return_exceptions=True)
                        done.set()
                        await stop.wait()

                for by in others:
                    done = asyncio.Event()
                    group.create_task(dial(by, done))
                    await done.wait()
                stop.set()
            return waiting

    async def main() -> None:
        everyone = frozenset(network.names)
        assert await full({"max_per_pair": 2}, everyone, [0, 0, 0, 2]) == [True, True, False, True]
        assert await full({"max_waiting": 3}, everyone, [0, 2, 3, 4]) == [True, True, True, False]
        assert await full({"max_per_key": 3}, None, [0, 2, 3, 4]) == [True, True, True, False]
        assert await full({"max_calls_per_origin": 3}, None, [0, 2, 3, 4]) == [True, True, True, False]
        for limit in ("max_per_key", "max_calls_per_origin"):
            assert await full({limit: 3}, everyone, [0, 2, 3, 4]) == [True] * 4  # pairs limit them

    run(main())


def test_limits_of_registrations(network: RelayNetwork) -> None:
    async def main() -> None:
        for limits in ({"max_registered": 1}, {"max_registered_per_origin": 1}):
            async with (
                network.relay(limits=limits) as relay,
                network.visitor(relay) as first,
                network.visitor(relay) as second,
            ):
                await first.register(network.parties[0])
                assert await second.refused(second.claim(network.parties[1])) is RelayRefusal.FULL
        async with network.relay(limits=limits, allow=frozenset(network.names)) as relay, network.visitor(relay) as one:
            await one.register(network.parties[0])
            async with network.visitor(relay) as other:
                await other.register(network.parties[1])  # the list limits them
                await registered(relay, 2)
            await registered(relay, 1)

    run(main())


@pytest.mark.parametrize(
    "said",
    [b"\xff", b"{}", b'{"type":"claim"}', b'{"type":"registered"}', b"[" * 4000, b'{"type":"declined","ticket":"x"}'],
)
def test_nonsense_ends_the_connection(network: RelayNetwork, said: bytes) -> None:
    async def main() -> None:
        async with network.relay() as relay, network.visitor(relay) as visitor:
            await visitor.socket.send(said, text=True)
            assert await visitor.ended() in (1002, 1007)

    run(main())


def test_what_is_too_long_too_early_or_said_twice_ends_the_connection(network: RelayNetwork) -> None:
    async def main() -> None:
        async with network.relay() as relay:
            async with network.visitor(relay) as visitor:
                await visitor.socket.send("x" * 5000)
                assert await visitor.ended() == 1002
            async with network.visitor(relay) as visitor:
                await visitor.socket.send(["x" * 3000, "x" * 3000])  # in frames
                assert await visitor.ended() == 1002
            async with network.visitor(relay) as visitor:
                await visitor.socket.send(b"a stream before a call")
                assert await visitor.ended() == 1002
            async with network.visitor(relay) as visitor:
                await visitor.socket.send(bytes(2**16 + 1))
                await visitor.ended()
            async with network.visitor(relay) as visitor:
                await visitor.register(network.parties[0])
                await visitor.say(visitor.claim(network.parties[0]))
                assert await visitor.ended() == 1002
            await registered(relay, 0)

    run(main())


def test_a_claim_in_frames_is_read(network: RelayNetwork) -> None:
    """As proxies may cut messages."""

    async def main() -> None:
        async with network.relay() as relay, network.visitor(relay) as visitor:
            text = msgspec.json.encode(visitor.claim(network.parties[0])).decode()
            await visitor.socket.send([text[:10], "", text[10:]])
            assert isinstance(await visitor.hear(), Registered)

    run(main())


def test_liars_are_logged_by_label_and_not_by_address(network: RelayNetwork) -> None:
    async def main() -> None:
        with RelayLog() as log:
            async with network.relay() as relay, network.visitor(relay) as liar:
                await liar.refused(msgspec.structs.replace(liar.claim(network.stranger), key=bytes(32)))
        (refusal,) = log.named("refused")
        assert refusal["reason"].startswith("proof: a key from ") and "127.0.0.1" not in str(log.events[1:])
        with RelayLog() as log:
            async with network.relay(log_addresses=True) as relay, network.visitor(relay) as liar:
                await liar.refused(msgspec.structs.replace(liar.claim(network.stranger), key=bytes(32)))
        assert log.named("refused")[0]["reason"] == "proof: a key from 127.0.0.1"

    run(main())


def test_messages_can_be_read_by_their_readers_alone() -> None:
    for message in (Registered(), Incoming("t", "o"), PresenceReply("x", True), ClaimRefused(RelayRefusal.FULL)):
        text = msgspec.json.encode(message)
        assert from_relay(text) == message
        with pytest.raises(ValueError, match="Invalid value"):
            from_party(text)
    for rude in (Incoming("t", "o" * 65), Incoming("\x1b[2J", "o"), PresenceReply("a b", True)):
        with pytest.raises(ValueError, match="Expected `str`"):
            from_relay(msgspec.json.encode(rude))
    assert all(reason.meaning and reason.cause for reason in RelayRefusal)
