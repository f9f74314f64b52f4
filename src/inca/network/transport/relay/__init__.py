"""A blind relay: it joins the outgoing connections of parties that may open no port, and passes their bytes on.

It holds no key of theirs and reads nothing. The parties' own TLS, with pinned certificates, runs from end to end
through it, and whatever it does to the bytes looks to them like a connection that broke. It learns who talks to whom,
when and how much; it can cut, delay and refuse.

**Outside it looks like the web**: a WebSocket over HTTPS, which proxies and firewalls let through. Parties obey
HTTPS_PROXY and NO_PROXY. A proxy that opens TLS can cut or occupy a registration, and read no more than a relay can.

**Claims.** The relay begins each connection with a fresh challenge. The party signs it, with what it wants and the name
under which it dialled the relay, so that nobody can use the signature elsewhere or again (`messages`). At a relay a
party's name is the fingerprint of its key. A party *registers* at its relays and keeps that connection. Another party
*dials* it there, on a connection of its own; the relay tells the callee, which *answers* on a new one. The two are
joined: each binary message is a piece of the stream, an empty one its end. Registered parties may *ask* who
else is there: a dial costs a handshake, and a consortium may wait for its last member for days.

**One registration for each key.** A second one is refused while the first shows to be alive, and both processes are
told: a copied machine must not take over. A dead one gives way within seconds; the same process gets back at once.

**Reading and writing** happen without tasks and queues: each end of a connection is a `WebSocketLink`, which handles
what has arrived at once. If a sender is faster than the other end reads, or than its key may be, the relay reads no
more from it for a while. A reader that pauses answers no pings, so that only control connections must answer them; the
others are pinged since proxies cut idle connections.

**Limits** (`RelayLimits`) count connections by origin before TLS, and by pair and key after a claim. The callee is told
an opaque label of where a call comes from, so that its own limits tell outsiders apart. On the relay's side TLS runs on
memory buffers: asyncio's own would take 285 KiB for each connection, this takes 25 KiB with all else.

**Ends.** Relays share no state: a party names several, and is registered at all that it reaches. A relay that stops
closes registrations at once and calls when nothing is under way. Failures name the relay or the proxy, whoever it
was, and never blame the peer for what either may have done.

    party:  client -> opening -> stream -> link, messages; access
    relay:  server -> switchboard, server_link, certificate, origins, metrics -> link, messages, options
"""
