"""For mkdocstrings: examples in docstrings are blocks of code, lists of arguments and of files are lists."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object


def fence(text: str) -> str:
    """Prose as it is; sessions and what is lined up by spaces as blocks, arguments with their meanings as lists."""
    parts = []
    for part in re.split(r"\n\s*\n", text):
        if part.lstrip().startswith(">>> "):
            parts.append(f"```pycon\n{part}\n```")
        elif all(re.match(r"\w+: \S", line) for line in part.splitlines()):
            parts.append("\n".join(f"- `{name}`: {told}" for name, _, told in map(_halve, part.splitlines())))
        elif re.search(r"^\S+ {2,}\S", part, flags=re.MULTILINE):
            parts.append(f"```text\n{part}\n```")
        else:
            parts.append(part)
    return "\n\n".join(parts)


def _halve(line: str) -> tuple[str, str, str]:
    return line.partition(": ")


class Sessions(Extension):
    """Rewrites docstrings as they are found."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fence(obj.docstring.value)
