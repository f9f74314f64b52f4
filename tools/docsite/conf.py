"""What Sphinx is told of the documentation site (build.py). Looking at the site asks nothing of other machines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "src")]

from inca._base.palette import DARK, LIGHT  # noqa: E402

project = "inca"
author = "the inca developers"
copyright = "the inca developers, Apache-2.0"
html_title = "inca"
language = "en"

extensions = ["myst_parser", "sphinx_copybutton", "docsite.mathml"]
myst_enable_extensions = ["attrs_inline", "deflist", "dollarmath"]
myst_heading_anchors = 4
highlight_language = "none"
nitpicky = True
smartquotes = False  # "settled" is a value, not a quotation

html_theme = "furo"
html_favicon = html_logo = str(HERE.parents[1] / "docs" / "pictures" / "favicon.svg")
html_static_path = [str(HERE / "static")]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = html_show_sourcelink = html_show_sphinx = html_use_index = False
html_domain_indices = False
html_show_search_summary = False  # it would fetch pages, which a browser refuses to those opened from a folder
pygments_style = "docsite.highlight.Light"
pygments_dark_style = "docsite.highlight.Dark"
copybutton_prompt_text = r">>> |\.\.\. |\$ |> "
copybutton_prompt_is_regexp = True

_FONT = 'system-ui, "Segoe UI", Roboto, sans-serif'
_CODE_FONT = "ui-monospace, Menlo, Consolas, monospace"


def variables(theme: dict[str, str]) -> dict[str, str]:
    """Return the theme's variables in our colours, as the dashboard's style sheet has them for the same purposes.

    >>> variables(LIGHT)["color-brand-primary"] == LIGHT["own"]
    True
    """
    by_purpose = {
        "ink": ("foreground-primary", "brand-visited", "sidebar-link-text--top-level"),
        "soft": ("foreground-secondary", "foreground-muted", "sidebar-caption-text"),
        "line": ("foreground-border", "background-border", "sidebar-background-border", "card-border", "table-border"),
        "paper": ("background-primary", "background-hover--transparent", "sidebar-search-background--focus"),
        "card": (
            "background-secondary",
            "highlight-on-target",
            "sidebar-background",
            "code-background",
            "inline-code-background",
        ),
        "own": ("brand-primary", "brand-content", "link", "link--visited", "link--hover", "link--visited--hover"),
    }
    colours = {f"color-{name}": theme[purpose] for purpose, names in by_purpose.items() for name in names}
    colours |= {f"inca-{purpose}": colour for purpose, colour in theme.items()}
    return colours | {"font-stack": _FONT, "font-stack--headings": _FONT, "font-stack--monospace": _CODE_FONT}


html_theme_options: dict[str, Any] = {
    "light_css_variables": variables(LIGHT),
    "dark_css_variables": variables(DARK),
    "navigation_with_keys": True,
    "top_of_page_buttons": [],
}
