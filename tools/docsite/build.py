"""Build the documentation site: every warning is an error, and nothing is asked of other machines.

    python tools/docsite/build.py build/site

The pages are those of docs/ and a few more (pages.py); its sources are kept beside the site, so that a second build
does only what has changed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "src")]

from docsite import pages  # noqa: E402


def build(out: Path, work: Path) -> int:
    """Build the site.

    Args:
        out: The folder of the site.
        work: A folder for sources and intermediate results.

    Returns:
        0, or the exit status of Sphinx if something is wrong with a page.
    """
    from sphinx.cmd.build import build_main

    pages.stage(work / "pages")
    options = ["--fail-on-warning", "--keep-going", "--quiet", "--jobs", "auto"]
    folders = ["-c", str(HERE), "-d", str(work / "doctrees"), str(work / "pages"), str(out)]
    return build_main([*options, *folders])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, nargs="?", default=pages.ROOT / "build" / "site")
    arguments = parser.parse_args()
    try:
        sys.exit(build(arguments.out, arguments.out.with_name(f"{arguments.out.name}-work")))
    except ValueError as error:
        sys.exit(f"{error}")
