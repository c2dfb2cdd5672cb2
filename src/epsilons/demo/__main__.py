"""`python -m epsilons.demo`: results on stdout, progress and notes on stderr, one report in a file."""

import argparse
import json
import logging
import sys
import tempfile
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

import epsilons as eps
from epsilons.demo import questions
from epsilons.demo.people import GROUPS, PREFERENCE_SEED, Population, load_population, state_in
from epsilons.demo.questions import DemoResult, LedgerSummary
from epsilons.demo.terminal import NOT_PROMISED, fill_texts, print_all


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; 0 if all went well, 1 if something it needs is missing."""
    parser = argparse.ArgumentParser(
        prog="python -m epsilons.demo",
        description="Ask real wages five questions while everyone keeps their own epsilon, and write a report.",
        epilog="example:\n  python -m epsilons.demo --json --out wages.html > wages.json\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    where = "where the report goes (default: %(default)s in the current directory)"
    parser.add_argument("--out", type=Path, default=Path("epsilons-demo.html"), metavar="FILE", help=where)
    options = parser.parse_args(arguments)
    notes = Console(stderr=True)
    try:
        found = _ask(notes, options.out)
    except eps.EpsilonsError as error:
        notes.print(str(error), markup=False, soft_wrap=True)
        return 1
    if options.json:
        json.dump(_document(*found, str(options.out)), sys.stdout, indent=2, allow_nan=False)
        sys.stdout.write("\n")
    else:
        if isinstance(sys.stdout, TextIOWrapper):
            # A terminal that knows no Greek shows a question mark rather than an error.
            sys.stdout.reconfigure(errors="replace")
        print_all(Console(highlight=False), *found, str(options.out))
    return 0


def _ask(notes: Console, out: Path) -> tuple[Population, tuple[DemoResult, ...], LedgerSummary]:
    columns = (TextColumn("{task.description}"), BarColumn())
    with Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as progress:
        steps = progress.add_task("Loading wages", total=len(questions.QUESTIONS) + 2)
        population = load_population()
        asked: list[DemoResult] = []
        # The ledger is a file, as it would be for real, but one that goes with the demo: so does what is known of it.
        with tempfile.TemporaryDirectory() as folder, state_in(folder):
            ledger = eps.ledger.open(f"sqlite:///{folder}/wages.ledger", witness=False)
            with population.dataset(ledger, folder) as people:
                for one in questions.ask_all(population, people):
                    progress.update(steps, advance=1, description=one.question.text)
                    asked.append(one)
                summary = questions.summarize_ledger(population, people, asked[1].best.release)
            ledger.close()
        progress.update(steps, advance=1, description="Drawing pictures")
        # matplotlib logs about its caches on a fresh machine, which would look like a note of the demo.
        logging.getLogger("matplotlib").setLevel(logging.ERROR)
        try:
            # Imported here: matplotlib is an extra, and takes a while to load.
            from epsilons.demo.report import write_report
        except ImportError:
            needed = "pip install 'epsilons[datasets,plots]'"
            raise eps.DataError("The report needs matplotlib.", suggest=needed) from None
        write_report(out, population, tuple(asked), summary)
    return population, tuple(asked), summary


def _document(people: Population, results: tuple[DemoResult, ...], ledger: LedgerSummary, report: str) -> Any:
    """The demo as one JSON document: plain values; a table of numbers is a list of [low, high, number]."""
    promise, texts = results[0].best.release.guarantee, fill_texts(people, results, ledger)
    groups = [
        {"name": group.name, "people": len(people.granted(place)), "lowest": group.low, "highest": group.high}
        for place, group in enumerate(GROUPS)
    ]
    stated = {"in_words": texts["promise"], "caveats": [*promise.caveats, *NOT_PROMISED]}
    balance = ("name", "average_granted", "average_left", "questions_like_the_last_one_left")
    left = [(group.name, group.granted, group.left, group.questions) for group in ledger.groups]
    return {
        "format": 2,
        "data": {"name": "AER CPS1988", "people": len(people), "about": texts["data"]},
        "preferences": {"simulated": True, "seed": PREFERENCE_SEED, "recipe": texts["recipe"], "groups": groups},
        "confidence": questions.CONFIDENCE,
        "questions": [_question(one) for one in results],
        "guarantee": {"kind": promise.kind, "neighbors": promise.neighbors, **stated},
        "ledger": {
            "share": questions.QUESTION_SHARE,
            "releases": len(ledger.spending),
            "entries": ledger.entries,
            "same_question_again_is_free": ledger.same_again,
            "spending": ledger.spending,
            "levels": [{"granted": granted, "left": left} for granted, left in ledger.levels.items()],
            "groups": [dict(zip(balance, row, strict=True)) for row in left],
            "budget": ledger.budget.to_dict(),
        },
        "report": report,
    }


def _question(one: DemoResult) -> dict[str, Any]:
    return {
        "name": one.question.name,
        "statistic": one.question.statistic,
        "question": one.question.text,
        "unit": one.question.unit,
        "guess": one.question.guess,
        "truth_for_comparison_only": _rows(one.truth),
        "best": one.best.mechanism,
        "answers": [
            {
                "mechanism": answer.mechanism,
                "value": _rows(answer.release.value),
                "predicted_error": answer.predicted_error,
                "interval": _rows(answer.interval),
                "true_error_for_comparison_only": answer.true_error,
                "people_used": answer.used,
                "charged": dict(zip(("lowest", "highest"), answer.charged, strict=True)),
                "private": answer.release.private,
            }
            for answer in one.answers
        ],
    }


def _rows(value: Any) -> Any:
    """The classes of a histogram as rows of numbers; anything else as it is."""
    if not isinstance(value, dict):
        return value
    return [[*key, *(number if isinstance(number, tuple) else (number,))] for key, number in value.items()]


if __name__ == "__main__":
    sys.exit(main())
