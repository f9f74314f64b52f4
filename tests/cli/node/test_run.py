from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.command_line import MAIN, Capture, call, instead, refused
from helpers.documents import result as result_document
from helpers.pace import allowance
from helpers.rosters import SEED, terms
from inca.network.membership.identity import Identity, read_card
from inca.network.membership.roster import Roster, read_roster
from inca.network.node.journal import Journal
from inca.network.protocol.messages import unpack
from inca.network.protocol.records import Began, Credited, Opened
from inca.network.testing.local_cluster import LocalCluster, free_ports
from inca.protocol.execution_files import digest, read_execution
from inca.reporting.parts import rounded_up

pytestmark = pytest.mark.real_time

NAMES = ("anna", "bert", "cleo", "dora")
VALUES = np.array([61.7283945, 207.3648591, 118.2736459, 93.8172635])
OUTSIDE = 999.1827364  # given by bert, and clipped to 240


# --- a session of four processes ------------------------------------------------------------------------------------


class Processes(LocalCluster):
    """A consortium whose parties are commands, each with options of its own."""

    program: Sequence[str] = MAIN

    def __post_init__(self) -> None:
        super().__post_init__()
        self.commands: dict[int, subprocess.Popen[bytes]] = {}

    def run(self, i: int, *options: str, stdin: Path | None = None) -> None:
        place = self.party_folder(i)
        words = ["node", "run", str(self.folder / "roster.json"), "--identity", str(place), "--json"]
        words += ["--state", str(place / "sessions"), *options]
        with self.output(i).open("ab") as out, (stdin or Path(os.devnull)).open() as source:
            command = [*self.program, *words]
            self.commands[i] = subprocess.Popen(command, stdin=source, stdout=out, stderr=subprocess.STDOUT)

    def output(self, i: int) -> Path:
        return self.party_folder(i) / "output.txt"

    def terminate(self, i: int) -> None:
        self.commands[i].send_signal(signal.SIGTERM)  # before the first round it can come back
        assert self.commands[i].wait(5.0 * allowance()) == 1

    def end(self) -> None:
        for process in self.commands.values():
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory, programs: Path) -> Iterator[Processes]:
    """Four processes with values from everywhere; cleo is stopped when all are there, and goes on."""
    # Next to no noise, so that the estimate can be compared; and time for four processes to start on two cores, and for
    # one to start again, however busy the machine is.
    noise = {"sigma_independent": 0.05, "epsilon": 1e9}
    one_start = _start_duration(programs, tmp_path_factory.mktemp("start"))
    start, period = time.time() + allowance() * (8.0 + 8.0 * one_start), allowance() * max(2.0, one_start)
    agreed = terms(seed=SEED, start=start, period=period, max_clock_skew=0.5, **noise)
    cluster = Processes(tmp_path_factory.mktemp("session"), VALUES, NAMES, agreed)
    cluster.program = [str(programs / "inca")]
    anna, bert, cleo, dora = (cluster.party_folder(i) / "value.txt" for i in range(4))
    bert.write_text(f"{OUTSIDE}\n")
    cleo.write_text(str(VALUES[2]))
    dora.write_text(f" {VALUES[3]} ")
    try:
        cluster.run(0, "--value", str(anna.with_suffix(".npy")), "--shred")
        cluster.run(1, "--value-command", f"cat {shlex.quote(str(bert))}", "--clip")
        cluster.run(2, "--value", str(cleo))
        cluster.run(3, "--value", "-", "--listen", f"0.0.0.0:{cluster.roster.addresses_of(3)[0].port}", stdin=dora)
        _until(lambda: any(entry["event"] == "planned loss" for entry in cluster.log(2)), start - time.time())
        cluster.terminate(2)
        cluster.run(2)  # the value is not needed any more
        for process in cluster.commands.values():
            process.wait(max(1.0, start + 10.0 * period - time.time()))
        assert cluster.result(0)["weight"] >= 3.5  # what cleo misses at most: it asks the others first
        yield cluster
    finally:
        cluster.end()


def _start_duration(programs: Path, folder: Path) -> float:
    """Return how many seconds a node takes to start now: the second one, as the first may wait for the library."""
    code = "from inca.network.node.runner import run_party; from inca.network.node.warm_up import warm_up; warm_up()"
    (folder / "start.py").write_text(code)
    for _ in range(2):
        began = time.monotonic()
        subprocess.run([programs / "python", folder / "start.py"], check=True)
    return time.monotonic() - began


def _until(holds: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_all_have_the_same_result(session: Processes) -> None:
    results = [session.result(i) for i in range(4)]
    assert [process.returncode for process in session.commands.values()] == [0] * 4
    weight = results[0]["weight"] - 3.0
    expected = (VALUES[0] + 240.0 + weight * VALUES[2] + VALUES[3]) / (3.0 + weight)
    assert weight <= 1.0
    for i, result in enumerate(results):
        assert abs(result["estimate"] - expected) < 0.5 and result["present"] == 4 and result["reason"] == ""
        assert (result["party"], result["session"]) == (NAMES[i], session.roster.session.hex())
        assert 0.0 < result["epsilon"] <= result["wanted"] and result["contradictions"] == []
        assert all(result[key] == results[0][key] for key in ("estimate", "total", "total_weight", "execution"))
        printed = session.output(i).read_text().splitlines()
        assert json.loads(printed[-1]) == result


def test_parties_behind_one_address_differ_by_their_ports(session: Processes) -> None:
    cards = [read_card(session.party_folder(i) / "card.json") for i in range(4)]
    assert all(card.addresses[0].startswith("127.0.0.1:") for card in cards)
    assert len({card.addresses for card in cards}) == 4
    assert tuple(cards) == session.roster.parties
    assert session.result(0)["cohort"] == list(NAMES)


def test_a_stopped_party_goes_on(session: Processes) -> None:
    printed = session.output(2).read_text()
    assert printed.startswith("stopped; start it again to go on\n")
    events = [entry["event"] for entry in session.log(2)]
    assert events.count("listens") == 2 and events.count("stopped") == 1 and events[-1] == "ended"
    assert "comes back" in events[events.index("stopped") :]


def test_a_party_that_waits_for_others_can_be_stopped(tmp_path: Path, programs: Path) -> None:
    alone = Processes(tmp_path, VALUES, NAMES, terms())
    alone.program = [str(programs / "inca")]
    try:
        alone.run(0, "--value", str(alone.party_folder(0) / "value.npy"))
        _until(lambda: bool(alone.log(0)))
        alone.terminate(0)
        assert alone.output(0).read_text() == "stopped; start it again to go on\n"
        assert [entry["event"] for entry in alone.log(0)][-1] == "stopped" and not alone.result(0)
    finally:
        alone.end()


def test_what_is_left_on_disk(capsys: Capture, session: Processes) -> None:
    for i in range(4):
        folder = session.session_folder(i)
        left = {path.name for path in folder.iterdir()}
        public = {"result.json", "execution.json", "certificate.json", "ended.json", "log.jsonl", "status.json"}
        assert left == public | (set() if i == 0 else {"journal.db", "journal.db-secret-0"})  # anna asked for --shred
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert json.loads((folder / "ended.json").read_text())["session"] == session.roster.session.hex()
        certificate = json.loads((folder / "certificate.json").read_text())
        assert certificate["format"] == "inca-certificate/2" and certificate["delta"] == 1e-3
        transcript, agreed = read_execution(folder / "execution.json"), session.terms.agreed
        assert (transcript.sensitivity, transcript.agreed, transcript.adversary) == (240.0, agreed, None)
        assert session.result(i)["execution"] == f"sha256:{digest(transcript)}"
        status, out, _ = call(capsys, "audit", folder / "execution.json", "--json")
        report = json.loads(out)
        assert status == 0 and (report["sensitivity"], report["delta"]) == (240.0, 1e-3)
        assert report["agreed"]["epsilon"] == 1e9 and report["kept"] is True


def test_nothing_public_holds_anything_private(session: Processes) -> None:
    """Neither the values in any spelling, nor the noisy values, shares and seeds of journals."""
    secrets: list[bytes] = [str(value).encode() for value in (*VALUES, OUTSIDE)] + [value.tobytes() for value in VALUES]
    for i in (1, 2, 3):
        journal = Journal(session.session_folder(i) / "journal.db", session=session.roster.session, party=i)
        records = journal.read()
        journal.close()
        for record in records:
            match record:
                case Opened():
                    secrets += [record.masks, record.secret, *_spellings(record.noisy)]
                case Began():
                    secrets += _spellings(record.share)
                case Credited():
                    secrets += _spellings(record.payload)
    assert len(secrets) > 50
    private = {"identity.pem", "journal.db", "journal.db-secret-0", "value.npy", "value.txt"}
    public = [path for path in session.folder.rglob("*") if path.is_file() and path.name not in private]
    assert len(public) >= 4 * 8
    for path in public:
        content = path.read_bytes()
        for secret in secrets:
            assert secret not in content and secret.hex().encode() not in content, path


def _spellings(payload: bytes) -> list[bytes]:
    """The bytes, and the first number that travels in decimal digits; the last one is a weight, which is public."""
    return [payload, payload[:8], str(int(unpack(payload, len(payload) // 8)[0])).encode()]


@pytest.mark.parametrize("party", [0, 1])
def test_the_session_is_never_held_again_but_its_result_is_told_again(
    capsys: Capture, session: Processes, party: int
) -> None:
    place = session.party_folder(party)
    before = {path: path.read_bytes() for path in session.session_folder(party).iterdir()}
    words = ["run", session.folder / "roster.json", "--identity", place, "--state", place / "sessions"]
    status, out, err = call(capsys, "node", *words)  # without a value: none is needed
    result = session.result(party)
    shown = " ".join(out.split())
    assert (status, err) == (0, "") and f"The estimated mean is {result['constrained']:.6g}. " in shown
    loss = f"{NAMES[party]} loses epsilon at most {rounded_up(result['epsilon'])}"
    assert f"{loss}, within the agreed epsilon 1e+09 at" in shown
    assert "4 of 4 are in the result" in shown and "Assumptions" not in shown
    details = call(capsys, "node", *words, "--details")[1]
    for part in ("Adds up exactly    yes", "Settled            anna, bert, cleo, dora", "Assumptions"):
        assert part in details
    status, out, err = call(capsys, "node", *words, "--json")
    assert (status, err) == (0, "") and json.loads(out) == result
    assert {path: path.read_bytes() for path in session.session_folder(party).iterdir()} == before


def test_a_session_that_ended_without_a_result_says_why_again(capsys: Capture, tmp_path: Path, roster: Path) -> None:
    folder = tmp_path / "state" / read_roster(roster).session.hex()[:16]
    folder.mkdir(parents=True)
    none: dict[str, Any] = {"estimate": None, "reason": "too few were there", "coalitions": None, "epsilon": None}
    result_document(**none, constrained=None, interval=None).write(folder / "result.json")
    (folder / "ended.json").write_text("{}")
    words = ["--identity", roster.parent / "anna", "--state", tmp_path / "state", "--value-command", "echo 5"]
    status, out, err = call(capsys, "node", "run", roster, *words)
    assert (status, err) == (3, "") and "  No result          Too few were there.\n" in out
    status, out, err = call(capsys, "node", "run", roster, *words, "--json")
    assert (status, json.loads(out), err) == (3, json.loads((folder / "result.json").read_text()), "")


def test_a_session_that_has_ended_tells_a_stranger_nothing(capsys: Capture, session: Processes, tmp_path: Path) -> None:
    Identity.create("stranger").write(tmp_path / "stranger", "127.0.0.1:7001")
    words = ["--identity", tmp_path / "stranger", "--state", session.party_folder(0) / "sessions"]
    sentence = refused(capsys, "node", "run", session.folder / "roster.json", *words)
    assert "the identity of 'stranger' is not in the roster" in sentence


def test_a_journal_that_was_left_can_still_be_shredded(capsys: Capture, session: Processes, tmp_path: Path) -> None:
    """Whoever was killed between the report and the end, or did not ask for it at first."""
    copy = tmp_path / "sessions" / session.session_folder(3).name
    shutil.copytree(session.session_folder(3), copy)
    words = ["--identity", session.party_folder(3), "--state", tmp_path / "sessions", "--shred"]
    os.link(copy / "journal.db", tmp_path / "kept")
    before = (tmp_path / "kept").read_bytes()
    assert call(capsys, "node", "run", session.folder / "roster.json", *words)[0] == 0
    assert not (copy / "journal.db").exists() and (copy / "result.json").exists()
    after = (tmp_path / "kept").read_bytes()
    assert len(after) == len(before) and before[:16] == b"SQLite format 3\0" and after[:16] != before[:16]


def test_its_status_after_the_end(capsys: Capture, session: Processes) -> None:
    state = session.party_folder(2) / "sessions"
    status, out, _ = call(capsys, "node", "status", state)
    assert status == 0 and "  cleo: over, not running\n  round 3 of 3, " in out and " attended, 0 offers open" in out
    status, out, _ = call(capsys, "node", "status", state, "--json")
    (entry,) = json.loads(out)
    assert status == 0 and (entry["running"], entry["ended"], entry["stage"]) == (False, True, "over")
    assert entry["session"] == session.roster.session.hex()


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def roster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A roster of three with a start far away, beside the identities of its parties and of a stranger."""
    folder = tmp_path_factory.mktemp("refused")
    cards = []
    for name, port in zip((*NAMES[:3], "stranger"), free_ports(4), strict=True):
        cards.append(Identity.create(name).write(folder / name, f"127.0.0.1:{port}"))
    Roster("trial", terms(), tuple(cards[:3])).write(folder / "roster.json")
    return folder / "roster.json"


BAD_VALUES: dict[str, tuple[str, list[str], str]] = {
    "outside": ("713.25", [], "the value lies outside the agreed domain, [0, 240]: correct it, or give --clip"),
    "words": ("713.25 minutes", [], "value.txt must hold numbers, got something that is not a number"),
    "not finite": ("nan", [], "every coordinate of the value must be a finite number, got one that is not"),
    "infinite": ("inf", ["--clip"], "every coordinate of the value must be a finite number"),
    "two": ("71.325, 71.325", [], "the number of coordinates of the value must be 1, as agreed, got 2"),
    "nothing": (" ", [], "the number of coordinates of the value must be 1, as agreed, got 0"),
    "two sources": ("71.325", ["--value-command", "echo 71.325"], "--value-command cannot be combined with --value"),
    "no text": ("\ud800", [], "cannot be read: it is not text"),
}


@pytest.mark.parametrize("case", BAD_VALUES)
def test_bad_values_are_refused_without_showing_them(case: str, capsys: Capture, tmp_path: Path, roster: Path) -> None:
    text, options, sentence = BAD_VALUES[case]
    (tmp_path / "value.txt").write_bytes(text.encode("utf-8", "surrogatepass"))
    words = ["--identity", roster.parent / "anna", "--state", tmp_path / "state", "--value", tmp_path / "value.txt"]
    refusal = refused(capsys, "node", "run", roster, *words, "--quiet", *options)
    assert sentence in refusal
    assert "71" not in refusal.replace(str(tmp_path), "") and "713.25" not in _contents(tmp_path / "state")


def test_a_value_in_a_folder_that_may_not_be_entered_is_named_itself(
    capsys: Capture, tmp_path: Path, roster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of credentials of a service, say; it used to be the session's folder that "cannot be used"."""

    def refuse_entry(path: Path) -> bool:  # as for anyone but root, who may run these tests
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("inca.cli.node.run.Path.is_file", refuse_entry)
    value = tmp_path / "secret" / "value.txt"
    words = ["--identity", roster.parent / "anna", "--state", tmp_path / "state", "--value", value, "--quiet"]
    assert f"{value} cannot be read: Permission denied" in refused(capsys, "node", "run", roster, *words)


def _contents(folder: Path) -> str:
    return "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


OPTIONS: dict[str, tuple[list[str], str]] = {
    "no value": ([], "--value FILE, --value - or --value-command COMMAND must say where the value is, got none"),
    "no file": (["--value", "none.txt"], "--value must be an existing file, got 'none.txt'"),
    "no npy file": (["--value", "none.npy"], "--value must be an existing file, got 'none.npy'"),
    "failing command": (["--value-command", "echo 5; exit 3"], "--value-command failed with status 3"),
    "listen": (["--value-command", "echo 5", "--listen", "127.0.0.1"], "--listen must be HOST:PORT, got '127.0.0.1'"),
    "no port": (
        ["--value-command", "echo 5", "--listen", "127.0.0.1:0"],
        "--listen must be HOST:PORT, got '127.0.0.1:0'",
    ),
    "not ours": (["--value-command", "echo 5", "--listen", "192.0.2.1:7001"], "cannot listen on 192.0.2.1:7001"),
    "stranger": (["--value-command", "echo 5", "--identity", "stranger"], "the identity of 'stranger' is not in the"),
    "no identity": (["--value-command", "echo 5", "--identity", "nobody"], "identity.pem cannot be read"),
    "a file": (["--value-command", "echo 5", "--state", "roster.json"], "cannot be used: Not a directory"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_bad_options_are_refused(
    case: str, capsys: Capture, tmp_path: Path, roster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, sentence = OPTIONS[case]
    monkeypatch.chdir(roster.parent)
    words = instead(["--identity", "anna", "--state", tmp_path / "state", "--quiet"], *options)
    assert sentence in refused(capsys, "node", "run", roster, *words)


def test_a_roster_that_is_not_complete_is_refused(capsys: Capture, tmp_path: Path, roster: Path) -> None:
    complete = read_roster(roster)
    replace(complete, parties=complete.parties[:2]).write(tmp_path / "two.json")
    words = ["--identity", roster.parent / "anna", "--state", tmp_path / "state", "--value-command", "echo 5"]
    sentence = refused(capsys, "node", "run", tmp_path / "two.json", *words)
    assert "is not complete: the number of parties must be at least 3, got 2" in sentence
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("words", [[], ["--first-start"]])
def test_the_operator_s_word_is_passed_on(
    words: list[str], capsys: Capture, tmp_path: Path, roster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: list[Any] = []
    monkeypatch.setattr("inca.network.node.runner.run_party", lambda *words, **_: passed.extend(words))
    place = ["--identity", roster.parent / "anna", "--state", tmp_path / "state", "--value-command", "echo 5"]
    status, _, err = call(capsys, "node", "run", roster, *place, *words)
    assert status == 1 and "stopped; start it again to go on" in err
    assert passed[-1].first_start is bool(words)


def test_an_unfinished_session_is_to_be_started_again(
    capsys: Capture, tmp_path: Path, roster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    none: dict[str, Any] = {"estimate": None, "reason": "bert must come back", "coalitions": None, "epsilon": None}
    document = result_document(**none, constrained=None, interval=None)
    monkeypatch.setattr("inca.network.node.runner.run_party", lambda *_, **__: document)
    then: list[str] = []
    monkeypatch.setattr("inca.cli.node.run.print_next", then.append)
    place = ["--identity", roster.parent / "anna", "--state", tmp_path / "state", "--value-command", "echo 5"]
    status, out, _ = call(capsys, "node", "run", roster, *place)
    assert status == 1 and "Bert must come back." in out and not then
    folder = tmp_path / "state" / read_roster(roster).session.hex()[:16]
    folder.mkdir(parents=True)
    (folder / "ended.json").write_text("{}")
    assert call(capsys, "node", "run", roster, *place)[0] == 3 and "inca node roster reschedule" in then[0]


def test_there_is_nothing_to_forget_where_nothing_has_begun(capsys: Capture, tmp_path: Path, roster: Path) -> None:
    place = ["--identity", roster.parent / "anna", "--state", tmp_path / "state", "--forget"]
    assert "has not begun here" in refused(capsys, "node", "run", roster, *place)


def test_a_damaged_journal_stops_the_party(capsys: Capture, tmp_path: Path, roster: Path) -> None:
    folder = tmp_path / "state" / read_roster(roster).session.hex()[:16]
    folder.mkdir(parents=True)
    (folder / "journal.db").write_bytes(b"nonsense " * 1000)
    (folder / "journal.db").chmod(0o600)
    words = ["--identity", roster.parent / "anna", "--state", tmp_path / "state", "--value-command", "echo 5"]
    status, out, err = call(capsys, "node", "run", roster, *words, "--quiet")
    assert (status, out) == (1, "") and err.count("\n") == 1
    assert "cannot be used: file is not a database" in err
