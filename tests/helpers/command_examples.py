"""Every command of the command line once, with small input, in an order in which each finds what it needs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from helpers.paths import EXAMPLES
from inca.cli.app import build, commands

STATS = "--party clinic --column pressure --domain 80 200 --epsilon 1"
TERMS = "--rounds 4 --sigma-independent 3 --sigma-cancelling 30 --epsilon 1 --min-participants 3 --domain 0 1"

COMMANDS: dict[str, str] = {
    "plan": "--parties 20 --epsilon 1 --views 4 --no-baselines --out plan.json",
    "average": "values.csv --domain 0 240 --epsilon 1 --transcript run.json",
    "audit": "run.json",
    "report": "run.json --out report.html",
    "attack": "run.json --domain 0 240 --trials 100",
    "compare": "--parties 20 --epsilon 1 --messages 8 --dropout 0 --views 4",
    "reproduce": "fig3 --quick --workers 1 --out figures",
    "demo": "--parties 4 --kill 0 --restart 0 --keep-files --json",
    "dashboard": "run.json --no-browser --port 0",
    "node keygen": "anna --host 127.0.0.1 --port 7001 --out anna",
    "node card": "--identity anna --host 127.0.0.1 --port 7002",
    "node roster init": f"trial {TERMS} --start +1h --period 5s --out roster.json",
    "node roster add": "roster.json anna/card.json {demo}/party-001/card.json {demo}/party-002/card.json",
    "node roster show": "roster.json",
    "node roster reschedule": "roster.json --start +2h --out later.json",
    "node doctor": "roster.json --identity anna --state sessions --timeout 1",
    "node run": "{demo}/roster.json --identity {demo}/party-000 --state {demo}/party-000/sessions --value value.txt",
    "node status": "{demo}/party-000/sessions",
    "node ledger": "{demo}/party-000/sessions",
    "relay": "--name localhost --port 0 --allow roster.json",
    "stats mean": f"patients.csv {STATS}",
    "stats variance": f"patients.csv {STATS}",
    "stats histogram": f"patients.csv {STATS} --bins 4",
    "stats quantiles": f"patients.csv {STATS}",
    "stats regression": "patients.csv --party clinic --feature age:18:100 --target pressure:80:200 --epsilon 4",
    "learn compare": "--parties 10 --steps 1 --seeds 2 --epsilon 3 --dropout 0 --averager central --averager local",
    "learn agree": "study.json {demo}/roster.json",
    "learn party": "study.json {demo}/roster.json --identity {demo}/party-000 --state studies --records records.csv",
}
"""By command: the words behind it; {demo} is the folder that `inca demo` keeps, with a session that has been held."""

ENDLESS = ("dashboard", "relay")
"""Commands that run until they are stopped."""

ANSWERS_NO = {"learn party": "the first session of the study was held without this party, and nobody is left to ask"}
"""Examples that end with status 1 or 2, and why."""


def all_commands() -> list[str]:
    """Return all commands of the program, by the words that are typed."""
    return sorted(path for path, _ in commands(build()))


def write_inputs(folder: Path) -> None:
    """Write the files that the examples read and no example before them writes."""
    shutil.copy(EXAMPLES / "patients.csv", folder)
    (folder / "values.csv").write_text("minutes\n" + "".join(f"{minutes}\n" for minutes in range(20, 220, 5)))
    (folder / "value.txt").write_text("120\n")
    (folder / "records.csv").write_text("age\n" + "40\n" * 5)
    study: dict[str, Any] = {"format": "inca-study/1", "name": "ages", "task": "moments", "columns": {"age": [0, 100]}}
    study |= {"epsilon": 2.0, "delta": 1e-5, "interval": 2.0, "gathering": 0.5}
    study["records"] = dict.fromkeys(("Aachen", "Bergen", "Cork", "Delft"), 5)  # the parties of the demo
    (folder / "study.json").write_text(json.dumps(study))
