"""Parties around a table whose journals are files: any write can be the last, and what is said is held against them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from helpers.parties import Room
from helpers.simulated_network import on_disk
from inca.errors import JournalUnusable
from inca.network.node.journal import Journal, secret_files
from inca.network.protocol.context import Effects
from inca.network.protocol.ledger import Ledger
from inca.network.protocol.messages import Item, Items, Message, Promise, Proposal, Vote, Yes, payload_hash
from inca.network.protocol.opening.cohort_keys import COHORTS
from inca.network.protocol.opening.deposits import Deposit
from inca.network.protocol.records import Record
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import Digest, Key, read

BACK_S = 0.15  # after which whoever was killed is back


class Killed(BaseException):
    """The process is gone, in the middle of what it did to files."""


When = Literal["before", "after"]
Doom = Callable[[int, Sequence[Record]], When | None]


class RoomOnDisk(Room):
    """A room in which every party has the journal of a node.

    Whoever is killed leaves its folder as the kernel has it then: nothing is closed, the write-ahead log is there. Each
    incarnation goes on in a copy of that. Before anything is sent, `assert_durable` looks it up.

    Args:
        session: The terms of the session.
        folder: Where all parties have their folders.
        doom: Whether a write of a party is the last of its incarnation, and whether it is carried out.
        all_die: Whether everyone is killed then.
    """

    def __init__(
        self, session: SessionConfig, folder: Path, doom: Doom = lambda i, records: None, *, all_die: bool = False
    ) -> None:
        super().__init__(session)
        self.folder, self.doom, self.all_die = folder, doom, all_die
        self.kills = 0
        self.ends: list[BaseException] = []  # by which incarnations ended that were not killed at a write
        self._lives = dict.fromkeys(range(session.parties), 1)
        self.disks: dict[int, Journal] = {}
        self.durable = {i: Ledger(session, i) for i in range(session.parties)}
        for i in range(session.parties):
            self.home(i).mkdir(parents=True, mode=0o700)

    def home(self, i: int) -> Path:
        """The folder of the incarnation of now."""
        return self.folder / f"{i}" / f"{self._lives[i]}"

    def close(self) -> None:
        for journal in self.disks.values():
            journal.close()

    # --- incarnations -----------------------------------------------------------------------------------------------

    def open(self, *members: int, first_start: bool = False) -> RoomOnDisk:
        for i in members or range(self.session.parties):
            if i not in self.disks:
                self._open_disk(i)
            super().open(i, first_start=first_start)
        return self

    def recover(self, i: int, *, first_start: bool = False) -> None:
        records = self._open_disk(i)
        assert sorted(map(repr, records)) == sorted(map(repr, self.journals[i]))
        self.journals[i] = records
        self.durable[i] = Ledger(self.session, i)
        for record in records:
            self.durable[i].apply(record)
        super().recover(i, first_start=first_start)

    def _open_disk(self, i: int) -> list[Record]:
        self.disks[i] = Journal(self.home(i) / "journal.db", session=self.session.id, party=i)
        return self.disks[i].read()

    def kill(self, i: int) -> None:
        if i in self.disks:
            before = self.disks.pop(i)
            self._lives[i] += 1
            shutil.copytree(before.path.parent, self.home(i))
            before.close()
            shutil.rmtree(before.path.parent)
        super().kill(i)

    def perform(self, i: int, effects: Effects) -> None:
        when = self.doom(i, effects.records) if effects.records else None
        written = False
        try:
            if effects.records and when != "before":
                self.disks[i].append(effects.records)
                written = True
                for record in effects.records:
                    self.durable[i].apply(record)
            if when is None:
                self.disks[i].write_ahead(self.parties[i].finalization.sealed_messages)
        except (Killed, JournalUnusable) as error:
            self.ends.append(error)
            when = "after" if written else "before"
        if when is not None:
            self.kills += 1
            if written:
                self.journals[i] = on_disk([*self.journals[i], *effects.records])
            self._die(i)
            return
        for _, message in effects.sends:
            self.assert_durable(i, message)
        super().perform(i, effects)

    def _die(self, i: int) -> None:
        dying = sorted(self.disks) if self.all_die else [i]
        if self.all_die:
            self.queue.clear()
        for j in dying:
            self.kill(j)
            self.at(self.now + BACK_S, self.recover, j)

    # --- the table of docs/settlement.md ----------------------------------------------------------------------------

    def assert_durable(self, i: int, message: Message) -> None:
        """What a party says must be on its disk, with all that it rests on; and what it must have erased, must not."""
        ledger = self.durable[i]
        if ledger.secrets is not None:
            assert [number for number, _ in secret_files(self.disks[i].path)] == [max(0, ledger.cohorts - 1)]
        match message:
            case Items(items=items):
                for item in items:
                    if item.party == i:
                        self._assert_own_is_durable(ledger, item)
            case Promise(instance=instance, ballot=ballot):
                assert ledger.promised[instance] >= ballot
            case Vote(instance=instance, ballot=ballot):
                assert ledger.voted[instance].ballot == ballot
            case Yes(instance=instance, ballot=ballot):
                assert ledger.accepted[instance].lock.ballot == ballot
                self._assert_held(ledger, ledger.accepted[instance].lock.proposal)
            case _:
                pass

    def _assert_own_is_durable(self, ledger: Ledger, item: Item) -> None:
        own = {signed.hash for signed in ledger.own_items.values()}
        if item.kind == "digest":
            assert item.hash in own and len(read(item, Digest).keys) == COHORTS
            if ledger.secrets is not None:
                number = ledger.secrets.cohort
                assert ledger.secrets.public_keys(COHORTS - number) == read(item, Digest).keys[number:]
        elif item.kind in ("deposit", "refusal"):
            assert item.hash in own
        elif item.kind == "key":
            assert ledger.committed and read(item, Key).cohort == ledger.cohorts - 1
            self._assert_held(ledger, ledger.decided[-1].proposal)
        elif item.kind == "done" and ledger.committed:
            shown = [kept for kept in ledger.durable_items if kept.kind == "key"]
            cohort = ledger.cohort
            assert cohort is not None and len(shown) >= len(cohort.parties) // 2 + 1

    def _assert_held(self, ledger: Ledger, proposal: Proposal) -> None:
        kind = "digest" if proposal.step == "cohort" else "deposit"
        held = {(item.party, item.hash): item for item in ledger.durable_items if item.kind == kind}
        assert held.keys() >= set(proposal.contents)
        if kind == "deposit":
            for item in map(held.__getitem__, proposal.contents):
                assert payload_hash(item.sealed) == read(item, Deposit).sealed
