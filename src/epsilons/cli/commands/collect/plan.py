"""`epsilons collect plan`: how many to ask, and which sampling rate."""

from __future__ import annotations

from typing import Any

import click

from epsilons.cli.terminal import as_json, print_json, results


@click.command()
@click.option("--error", type=float, required=True, help="Wanted error: of the share, or in people with --count.")
@click.option("--epsilon", type=float, default=1.0, show_default=True, help="Wanted leakage.")
@click.option("--delta", type=float, default=1e-6, show_default=True, help="How likely more may leak.")
@click.option("--options", type=int, default=1, show_default=True, help="How many options besides none.")
@click.option("--share", type=float, help="Guessed share of respondents who have an option (default 0.5).")
@click.option("--count", type=int, help="Or: the size of a group in a crowd that may grow.")
@as_json
def command(
    error: float, epsilon: float, delta: float, options: int, share: float | None, count: int | None, as_json: bool
) -> None:
    """Say how many respondents, and which sampling rate, a wanted error and leakage need.

    Example:

      epsilons collect plan --error 0.01 --share 0.05 --epsilon 1
    """
    from epsilons.local.planning import plan

    found = plan(error, epsilon=epsilon, delta=delta, options=options, share=share, count=count)
    if as_json:
        print_json({"rows": [_document(row) for row in found.rows]})
    else:
        results().print(str(found), markup=False, soft_wrap=True)


def _document(row: Any) -> dict[str, Any]:
    known = row.protocol is not None
    return {
        "protocol": row.protocol.to_dict() if known else None,
        "holds_for": row.judge or "all",
        "respondents": row.respondents,
        "error": row.error if known else None,
        "reached": row.reached,
        "leakage": [one.to_dict() for one in (row.both_rounds, row.counts)] if known else [],
    }
