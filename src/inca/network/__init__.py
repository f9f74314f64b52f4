"""Real parties on a real network: identities, rosters and sessions over TLS, with a journal on every party's disk.

The names below are public; everything else in this package is internal.

- Before a session: `Identity`, `Card`, `Address`, `Terms`, `Roster`, and `examine`, which does what `inca node doctor`
  does.
- One session: `SessionSetup`, `NetworkAccess` and `run_party`.
- Several sessions of the same parties: `SessionSequence`.
- All parties on one machine, as processes: `LocalCluster`.

Inside, `protocol` (a pure state machine), `transport` (frames over TLS) and `membership` know nothing of each other;
`node` joins them, and `preflight`, `sequence` and `testing` stand on `node`.
"""

import lazy_loader

# Names are loaded when first used: cryptography is optional. __init__.pyi lists them.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
