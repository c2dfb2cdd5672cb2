"""Write docs/claims.md and docs/corrections.md from what `epsilons papers all` left: `make papers` runs both.

python tools/papers.py results
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from epsilons.papers.claims import write_claims, write_corrections

DOCS = Path(__file__).resolve().parent.parent / "docs"


def main(results: str) -> None:
    """Both pages, from the claims that a run checked."""
    checked = json.loads((Path(results) / "claims.json").read_text(encoding="utf-8"))
    (DOCS / "claims.md").write_text(write_claims(checked), encoding="utf-8")
    (DOCS / "corrections.md").write_text(write_corrections(checked), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
