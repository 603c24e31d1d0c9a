"""The manual's build: ``make docs``."""

import sys
from pathlib import Path

from pygments.lexers.special import TextLexer

from budgetbandits import __version__

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "budgetbandits"
author = "The budgetbandits developers"
copyright = "2026, the budgetbandits developers"
release = version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_proof",
    "sphinx-mathjax-offline",  # formulas without a network
    "diagrams",
    "cells",
    "reference",
]
myst_enable_extensions = ["amsmath", "attrs_block", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
numfig = True
math_numfig = True
math_eqref_format = "({number})"
prf_realtyp_to_countertyp = dict.fromkeys(["theorem", "lemma", "corollary", "definition"], "proposition")
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_mock_imports = ["litellm", "openai"]
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
exclude_patterns = ["_build", "_extensions", "reference/generated"]
nitpicky = False

html_theme = "pydata_sphinx_theme"
html_title = "budgetbandits"
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_js_files = ["manual.js"]
html_use_index = html_domain_indices = False  # no page leads to them
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "budgetbandits"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "icon_links": [
        {
            "name": "Source",
            "url": "https://github.com/budgetbandits/budgetbandits",
            "icon": "fa-brands fa-github",
        },
    ],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "github-dark",
}
html_sidebars = {"index": []}


def setup(app):
    app.add_lexer("csv", TextLexer)
