"""A hook of the site's build: LaTeX becomes MathML, which browsers draw themselves.

The usual way is a script fetched from a network at every reading; what this leaves is plain HTML.
"""

import html
import re

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

# As pymdownx.arithmatex (generic) leaves it: \(...\) in a line, \[...\] on its own.
MATHS = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(content: str, page: object, **_: object) -> str:
    """Replace every formula of a page; one that cannot be drawn fails the build."""

    def draw(formula: re.Match[str]) -> str:
        latex = html.unescape(formula[3]).strip()
        try:
            drawn = convert(latex, display="block" if formula[2] == "[" else "inline")
        except Exception as error:
            raise PluginError(f"{page}: cannot draw {latex!r}: {error!r}") from error
        # An unknown command comes out as itself, and so does a stray & (align* is known, aligned is not).
        if unknown := re.search(r"<m[io]>(\\[^<]*|&)</m[io]>", drawn):
            raise PluginError(f"{page}: cannot draw {unknown[1]} in {latex!r}")
        return drawn

    return MATHS.sub(draw, content)
