"""Frames between parties that know each other's certificates: one TLS connection per pair, whoever opened it.

It knows nothing of what the frames mean. `Transport` is what others use, with a `TransportConfig` and its
`TransportEvents`; a failure of a peer is a `Failure` with a `FailureCause`.

**Hello.** The side that connects says hello first, the other answers, and the first confirms; each hello but the first
repeats the other's nonce. So neither side takes a connection for live before the other has proven to be there *now*,
and what a process left in the network when it died is never taken for one that came later. Each process draws an
*incarnation* at its start: the latest one proven counts, and all connections of earlier ones are closed with nothing
more delivered.

**One connection.** Nobody says a first hello while having a live or an answered connection to that peer, and hellos are
numbered. So a first hello with a later number than the hello of the connection at hand shows that the peer has lost the
latter; an earlier number, that it had not seen it yet. When both say a first hello at once, the smaller id's counts.

**Certainty.** A frame is `unsent` only if nothing of it was ever given to TLS. What was given arrives, unless its
connection ends: then it is `in_doubt`, and whoever sends has to deal with that. Sent again before, it would only travel
twice.

**Violations.** A peer is refused for a while after a few frames that no honest peer sends: those that the transport
notices, and those that its user reports. An address is only slowed down. When too many connections are without hello,
the oldest from the address with the most gives way.

**Ways.** A party has one or more addresses, the best first: its own, or at relays (`relay`), for those that may only
dial out. A dial tries one after the other, and one that failed comes last for a while. Whichever way a connection came,
there is one for each pair, and the rules are the same.

**Why not asyncio's own streams** (`benchmarks/transport.py` compares the two, and this is no slower): they set aside
285 KiB for one end of a TLS connection, against 21 KiB here, and a hundred parties on one machine have ten thousand
ends. They encrypt what they are given at once and keep it; here a frame of which no byte has left is known, and is the
sender's again. They hand on what has arrived whenever they like; here a connection of an earlier process is cut off
between two frames. And here a long frame costs memory only as it arrives, and strangers are counted by address before
TLS begins.

    transport -> connections -> acceptor, peers -> connection -> streams -> frames, limits -> failures
                             -> tcp, relay: ways to a peer       peers -> routes
"""
