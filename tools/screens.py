"""Take pictures of the dashboard, with Chromium on this machine.

python tools/screens.py               the pictures of the docs
python tools/screens.py --all FOLDER  every view, light and dark, on a screen and on a telephone, to look at
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, expect

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from helpers.browser import browser, watched
from helpers.dashboard_server import CONSORTIUM, Dashboard, running
from helpers.ended_sessions import write_session
from helpers.paths import ROOT
from inca.documents.result import ResultDocument

RUN = "/run?parties=14&rounds=12&absent=5:5-+9:4-7&colluding=2+11&party=8&seed=4"
DOCS = {
    "story": ("/story?step=4", 800),
    "plan": ("/plan?parties=50&epsilon=1", 880),
    "run": (f"{RUN}&t=6", 970),
    "adversary": ("/adversary?parties=12&rounds=10&colluding=1+5&seed=1", 1300),
}
"""Addresses and heights of the pictures in the docs."""
READY = {
    "story": "main[data-ready]",
    "plan": ".next:not([inert])",
    "run": "main[data-step-ms]",
    "adversary": "main svg[role=img]",
}
"""What a view shows when it has its answer."""


def take(chromium: Browser, board: Dashboard, address: str, picture: Path, *, height: int = 900, **look: bool) -> None:
    """Save a picture of a view, of the whole page if so asked."""
    whole, narrow, dark = (look.get(name, False) for name in ("whole", "narrow", "dark"))
    with watched(chromium, board.root, width=390 if narrow else 1280, height=height, dark=dark) as window:
        window.page.goto(board.root + address)
        expect(window.page.locator("main h1")).to_be_visible()
        expect(window.page.locator(READY.get(address[1:].partition("?")[0], "main h1")).first).to_be_visible()
        window.page.wait_for_load_state("networkidle")
        window.page.wait_for_timeout(1000)  # until charts have settled on their width
        window.page.screenshot(path=picture, full_page=whole)
        window.check()


def _files(state: Path) -> AbstractContextManager[Dashboard]:
    """Serve a session that has ended, and a file of every kind."""
    write_session(state / "new")
    result = ResultDocument.read(state / "new" / "result.json")
    session = (state / "new").rename(state / result.session[:16])
    status = {"session": result.session, "party": result.party, "stage": "over", "round": 8, "rounds": 8, "attended": 8}
    status |= {"open_offers": 0, "connected": 7, "reason": "", "updated": 1.9e9, "process": 2**30}  # which has ended
    (session / "status.json").write_text(json.dumps(status))
    plan = ROOT / "examples" / "waiting-times-plan.json"
    return running([state], [CONSORTIUM, session / "certificate.json", plan, session / "result.json"])


def for_docs(chromium: Browser) -> None:
    """Write docs/pictures/dashboard-*.png."""
    with running() as board:
        for name, (address, height) in DOCS.items():
            take(chromium, board, address, ROOT / "docs" / "pictures" / f"dashboard-{name}.png", height=height)


def all_views(chromium: Browser, folder: Path) -> None:
    """Write a picture of every view in every look."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as state, _files(Path(state)) as board:
        files = {opened["kind"]: opened["id"] for opened in board.ask("files")["files"]}
        (session,) = board.ask("sessions")["sessions"]
        views = {
            **{name: address for name, (address, _) in DOCS.items()},
            "run-end": f"{RUN}&t=12&eavesdropped=12:3+3:*",
            "run-crowd": "/run?parties=600&rounds=12&t=6&party=8&absent=5:5-",
            "run-file": f"/run?file={files['execution']}",
            "adversary-compared": f"{DOCS['adversary'][0]}&compare=1&zoom=1&guess=informed",
            "adversary-broken": "/adversary?parties=80&injection=plain&sigma_independent=0&eavesdropped=2:*",
            "adversary-file": f"/adversary?file={files['execution']}",
            "sessions": "/sessions",
            "session": f"/sessions?session={session['id']}",
            "files": "/file",
            **{f"file-{kind}": f"/file?file={digest}" for kind, digest in files.items()},
        }
        for narrow in (False, True):
            for dark in (False, True):
                look = f"{390 if narrow else 1280}-{'dark' if dark else 'light'}"
                for name, address in views.items():
                    take(chromium, board, address, folder / f"{name}-{look}.png", whole=True, narrow=narrow, dark=dark)


def main() -> None:
    """Take the pictures that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", type=Path, metavar="FOLDER")
    folder = parser.parse_args().all
    with browser() as chromium:
        if folder is None:
            for_docs(chromium)
        else:
            all_views(chromium, folder)


if __name__ == "__main__":
    main()
