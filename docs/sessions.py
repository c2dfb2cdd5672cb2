"""For mkdocstrings: examples in docstrings are blocks of code, and lists of files are lists."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object


def fence(text: str) -> str:
    """Prose as it is; sessions and what is lined up by spaces as blocks."""
    parts = []
    for part in re.split(r"\n\s*\n", text):
        if part.lstrip().startswith(">>> "):
            parts.append(f"```pycon\n{part}\n```")
        elif re.search(r"^\S+ {2,}\S", part, flags=re.MULTILINE):
            parts.append(f"```text\n{part}\n```")
        else:
            parts.append(part)
    return "\n\n".join(parts)


class Sessions(Extension):
    """Rewrites docstrings as they are found."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fence(obj.docstring.value)
