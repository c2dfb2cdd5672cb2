"""Results are put into a page of the documentation, between two comments that name the command that wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def write_between(page: Path, markers: tuple[str, str], lines: Sequence[str]) -> None:
    """Replace what stands between the markers; the rest of the page stays as it is."""
    before, start, rest = page.read_text(encoding="utf-8").partition(markers[0])
    _, end, after = rest.partition(markers[1])
    if not (start and end):
        raise ValueError(f"{page.name} has no place for results: {' ... '.join(markers)}")
    told = "\n".join(lines).strip()
    page.write_text(f"{before}{start}\n\n{told}\n\n{end}{after}", encoding="utf-8")
