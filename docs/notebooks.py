"""The notebooks of examples/ as pages: text, code, and what comes out when it runs."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from pictures import save

#: Noise is drawn anew whenever the site is built.
_DIFFERS = "the tests run it as it stands here. Noise is drawn anew each time, so your numbers will differ."

#: Brackets would end the text of a picture.
_PLAIN = str.maketrans("[]", "()")


def write_notebook(file: Path, pictures: Path) -> str:
    """A notebook as one page of Markdown; what its code draws goes into the folder `pictures`."""
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    with _alone():
        namespace: dict[str, Any] = {"__name__": "__main__"}
        parts = [
            text
            for number, cell in enumerate(cells)
            for text in _write_cell(cell, namespace, pictures / f"{file.stem}-{number}.svg")
        ]
    title, _, rest = "\n\n".join(parts).partition("\n")
    return f"{title}\n\n*The notebook is `examples/{file.name}`; {_DIFFERS}*\n{rest}"


def _write_cell(cell: dict[str, Any], namespace: dict[str, Any], picture: Path) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        drawn = _run(source, namespace)
    if said.getvalue():
        yield f"```text\n{said.getvalue().rstrip()}\n```"
    if hasattr(drawn, "figure"):
        save(drawn, picture)
        yield f"![{' '.join(drawn.get_title().split()).translate(_PLAIN) or 'What is drawn'}]({picture.name})"


def _run(source: str, namespace: dict[str, Any]) -> Any:
    """The value of the last expression, as a notebook shows it."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<notebook>", "exec"), namespace)
    return eval(compile(ast.Expression(last.value), "<notebook>", "eval"), namespace) if last else None


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """In a folder and with a state of its own, for somebody who has run no other."""
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(tempfile, "tempdir", folder),
        mock.patch.dict(os.environ, {"XDG_STATE_HOME": f"{folder}/state", "COLUMNS": "80"}),
    ):
        yield
