"""Write the verdicts on the paper's claims, judged anew from the data in docs/reproduction, into docs/reproduction.md.

python tools/verdicts.py          # write
python tools/verdicts.py --check  # fail if the page says something else
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from inca.reproduction.report import summary
from inca.reproduction.reproduce import STUDIES, read_reproduction

HOME = Path(__file__).parents[1] / "docs"
PAGE = HOME / "reproduction.md"


def block(name: str) -> str:
    """Return the verdicts of a figure as a table, and the reasons where data and paper differ."""
    _, findings = read_reproduction(HOME / "reproduction" / name / f"{name}.json")
    rows = [f"| **{claim.verdict}** | {claim.text} | {claim.found} |" for claim in findings.claims]
    reasons = [f"- *{claim.text}* Differs, as {claim.why}." for claim in findings.claims if claim.agrees is False]
    table = [f"{summary(findings.claims)}.", "", "| verdict | claim | found |", "|---|---|---|", *rows]
    return "\n".join([*table, *([""] if reasons else []), *reasons])


def filled(text: str, name: str) -> str:
    """Return the page with the verdicts of one figure in their place."""
    between = rf"(<!-- verdicts of {name} -->\n)(.*?)(\n<!-- end -->)"
    text, found = re.subn(between, lambda match: match[1] + block(name) + match[3], text, flags=re.DOTALL)
    assert found == 1, f"{PAGE.name} has no place for the verdicts of {name}"
    return text


def main() -> None:
    """Write the page, or compare."""
    text = old = PAGE.read_text(encoding="utf-8")
    for name in STUDIES:
        text = filled(text, name)
    if "--check" in sys.argv[1:]:
        sys.exit(0 if text == old else f"{PAGE.name} does not say what the data say: python tools/verdicts.py")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
