"""Write the verdicts on the paper's claims, worked out anew from the data in docs/reproduction, into the data files
and into docs/reproduction.md.

python tools/verdicts.py          # write
python tools/verdicts.py --check  # fail if the files say something else
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from inca._base.files import write_json
from inca.reproduction.figure_reproduction import FigureResults
from inca.reproduction.report import summary
from inca.reproduction.reproduce import FIGURES, claim_row, read_reproduction

HOME = Path(__file__).parents[1] / "docs"
PAGE = HOME / "reproduction.md"


def data_file(name: str) -> Path:
    """Return the data of a figure."""
    return HOME / "reproduction" / name / f"{name}.json"


def block(results: FigureResults) -> str:
    """Return the verdicts of a figure as a table, and the reasons where data and paper differ."""
    rows = [f"| **{claim.verdict}** | {claim.text} | {claim.evidence} |" for claim in results.claims]
    reasons = [f"- *{claim.text}* Differs, as {claim.why}." for claim in results.claims if claim.agrees is False]
    table = [f"{summary(results.claims)}.", "", "| verdict | claim | found |", "|---|---|---|", *rows]
    return "\n".join([*table, *([""] if reasons else []), *reasons])


def filled(text: str, name: str, results: FigureResults) -> str:
    """Return the page with the verdicts of one figure in their place."""
    between = rf"(<!-- verdicts of {name} -->\n)(.*?)(\n<!-- end -->)"
    text, places = re.subn(between, lambda match: match[1] + block(results) + match[3], text, flags=re.DOTALL)
    assert places == 1, f"{PAGE.name} has no place for the verdicts of {name}"
    return text


def main() -> None:
    """Write the files, or compare."""
    text = old = PAGE.read_text(encoding="utf-8")
    stale = []
    for name in FIGURES:
        _, results = read_reproduction(data_file(name))
        text = filled(text, name, results)
        document = json.loads(data_file(name).read_text(encoding="utf-8"))
        said = {"claims": [claim_row(claim) for claim in results.claims], "notes": list(results.notes)}
        if document | said != document:
            stale.append((data_file(name), document | said))
    if "--check" in sys.argv[1:]:
        names = [path.name for path, _ in stale] + ([PAGE.name] if text != old else [])
        sys.exit(f"{', '.join(names)}: not what the data say; run python tools/verdicts.py" if names else 0)
    for path, document in stale:
        write_json(path, document, indent=1)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
