"""`epsilons collect demo`: three aggregators, many made-up owners, one kill -9, a publication."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from epsilons.cli.commands.collect.survey import draw_map
from epsilons.cli.terminal import as_json, note, print_json, progress, write

if TYPE_CHECKING:
    from epsilons.demo.collecting import CollectionResult
    from epsilons.local.estimate import Estimate

_ROWS = 8


@click.command()
@click.option("--owners", type=click.IntRange(1_000, 10_000_000), default=100_000, show_default=True)
@click.option("--map", "picture", type=click.Path(dir_okay=False), help="Draw the estimate to this file, too.")
@as_json
def demo(owners: int, picture: str | None, as_json: bool) -> None:
    """Start three aggregators, send made-up owners' shares, kill and restart one of them midway, publish.

    Everything is real but the owners: processes, keys, HTTP, disks, noise. True numbers stand beside the estimates,
    which only a demo can show.

    Example:

      epsilons collect demo --owners 2000
    """
    from epsilons.demo.collecting import run_collection

    with tempfile.TemporaryDirectory(prefix="epsilons-demo-") as folder, progress() as bar:
        task = bar.add_task("owners", total=owners)
        told = run_collection(Path(folder), owners, lambda done: bar.update(task, completed=done), note)
    estimate = told.publication.estimate()
    if picture is not None:
        draw_map(told.publication.collection.survey, estimate, picture)
    print_json(_document(told, estimate)) if as_json else write(_page(told, estimate))


def _document(told: CollectionResult, estimate: Estimate) -> dict[str, Any]:
    low, high = estimate.interval()
    return {
        "owners": told.owners,
        "acknowledged": told.acknowledged,
        "counted": sum(batch.reports for batch in told.publication.batches),
        "sending_seconds": round(told.sending_seconds, 2),
        "publishing_seconds": round(told.publishing_seconds, 2),
        "cells": len(told.truth),
        "predicted_error": float(estimate.errors.mean()),
        "true_error": float(((estimate.values - told.truth) ** 2).mean() ** 0.5),
        "covered": int(((low <= told.truth) & (told.truth <= high)).sum()),
        "truth": told.truth.tolist(),
        "publication": told.publication.to_dict(),
        "estimate": estimate.to_dict(),
    }


def _page(told: CollectionResult, estimate: Estimate) -> str:
    from epsilons.demo.collecting import LEVELS, shade_map
    from epsilons.display import show, text_table

    facts = _document(told, estimate)
    low, high = estimate.interval()
    rows = [
        (
            estimate.labels[cell],
            f"{told.truth[cell]:,}",
            show(round(float(estimate.values[cell]), 1)),
            f"{show(round(float(low[cell]), 1))} to {show(round(float(high[cell]), 1))}",
        )
        for cell in told.truth.argsort()[::-1][:_ROWS].tolist()
    ]
    most = float(told.truth.max()) * 1.001
    pair = zip(shade_map(told.truth, most), shade_map(estimate.values, most), strict=True)
    width = 2 * round(len(told.truth) ** 0.5)
    levels = ", ".join(
        f"{batch.reports:,} at {batch.level} ({LEVELS[batch.level]:g})" for batch in told.publication.batches
    )
    lines = [
        told.publication.collection.survey.question,
        f"{facts['counted']:,} owners counted of {told.owners:,} sent: {levels}.",
        f"Sent in {told.sending_seconds:.1f} s, published in {told.publishing_seconds:.1f} s.",
        "",
        text_table(("cell", "truth", "estimate", "0.95 interval"), rows),
        f"... and {len(told.truth) - _ROWS} more; {facts['covered']} of {len(told.truth)} intervals hold the truth.",
        f"Error: {facts['true_error']:.1f} owners a cell; predicted: {facts['predicted_error']:.1f}.",
        "",
        f"{'the truth':<{width}}    as estimated",
        *(f"{one}    {two}" for one, two in pair),
        "",
        str(told.publication.guarantee),
    ]
    return "\n".join(lines)
