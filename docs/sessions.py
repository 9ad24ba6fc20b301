"""A part of the site's build: shows the `>>>` sessions of docstrings as code.

Markdown would read a line that begins with `>>>` as a quotation three deep.
"""

import re
from typing import Any

import griffe

_SESSION = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.MULTILINE)


class FencedSessions(griffe.Extension):
    """Puts every session of a docstring between fences, before it is read as Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute that has one."""
        if obj.docstring:
            obj.docstring.value = _SESSION.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
