"""Audits of OpenDP and diffprivlib by the tool that audits this package.

diffprivlib has an environment of its own (`make build/diffprivlib/.ready`); without it it is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from page import write_between

ROOT = Path(__file__).parents[1]
PYTHONS = {"OpenDP": sys.executable, "diffprivlib": str(ROOT / "build" / "diffprivlib" / "bin" / "python")}
PAGE = ROOT / "docs" / "audits.md"
START, END = "<!-- results: written by `make audit-peers ARGS=--write` -->", "<!-- end of results -->"
HEAD = ("| audited | neighbours | promised | found, at least | refuted by |", "|---|---|---|---|---|")


def find(library: str) -> Iterator[str]:
    """Rows of what the audits of one library found, in its own environment, each as soon as it is known."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [PYTHONS[library], str(ROOT / "benchmarks" / "peer_audits.py"), library]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as auditor:
        assert auditor.stdout is not None
        for line in auditor.stdout:
            yield tell(json.loads(line))
    if auditor.returncode:
        raise SystemExit(f"The audit of {library} failed.")


def tell(row: dict[str, Any]) -> str:
    """A row of the page."""
    promised = f"{row['promised']:.4g}" + ("" if row["delta"] is None else f", delta {row['delta']:g}")
    by = "the last bit" if "last bit" in row["event"] else "its value"
    verdict = "" if row["holds"] else f"**{by}**"
    found = f"{row['found']:.2f} of {row['draws']:,} draws"
    return f"| {row['name']} | {row['neighbors']} | {promised} | {found} | {verdict} |"


def main() -> None:
    """Audit, print, and on request write to the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the results into docs/audits.md")
    options = parser.parse_args()
    present = [name for name, python in PYTHONS.items() if Path(python).exists()]
    if options.write and len(present) < len(PYTHONS):
        parser.error("--write needs both libraries")
    lines: list[str] = []
    for library in present:
        print("\n".join(head := [f"**{library}**", "", *HEAD]), flush=True)
        lines += head
        for row in find(library):
            print(row, flush=True)
            lines.append(row)
        print()
        lines.append("")
    if options.write:
        write_between(PAGE, (START, END), lines)


if __name__ == "__main__":
    main()
