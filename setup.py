"""The package description, made of README.md; everything else is in pyproject.toml.

Where a package is listed there are no files beside its description. So a picture becomes the words that describe it,
and a link into the repository becomes its text.
"""

import re
from pathlib import Path

from setuptools import setup

CODE_BLOCK = re.compile(r"(^```.*?^```$)", flags=re.DOTALL | re.MULTILINE)
PICTURE = re.compile(r"!\[([^\]]*)\]\((?!https?:)[^)]*\)")
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)[^)]*\)")


def description(readme: str) -> str:
    """Return the README without what needs the files beside it; blocks of code stay as they are."""
    parts = CODE_BLOCK.split(readme)
    parts[::2] = [LINK.sub(r"\1", PICTURE.sub(r"*\1*", part)) for part in parts[::2]]
    return "".join(parts)


if __name__ == "__main__":
    readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    setup(long_description=description(readme), long_description_content_type="text/markdown")
