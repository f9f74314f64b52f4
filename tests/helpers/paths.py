"""Where things lie in the checkout."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES, DOCS, GOLDEN, FIXTURES = ROOT / "examples", ROOT / "docs", ROOT / "golden", ROOT / "tests" / "fixtures"
