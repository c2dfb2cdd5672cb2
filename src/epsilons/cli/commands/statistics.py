"""`epsilons mean`, `count` and so on: a command for every statistic; and `plan`, `budget`, `relation`, `sql`."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from contextlib import suppress
from decimal import ROUND_CEILING, Context
from typing import TYPE_CHECKING, Any

import click

from epsilons.arguments.options import QUERIES, TABLES
from epsilons.arguments.reading import read_call
from epsilons.cli import options, output
from epsilons.cli.errors import refusing
from epsilons.errors import LedgerError, PlanError
from epsilons.statistics.catalogue import CATALOGUE
from epsilons.statistics.entry import Entry

if TYPE_CHECKING:
    from epsilons.accuracy.relation import Relation
    from epsilons.dataset import Dataset
    from epsilons.dataset.asking import Asking
    from epsilons.dataset.batch import Batch
    from epsilons.planner.guesses import Known
    from epsilons.remote.client import RemoteDataset


def _command(entry: Entry) -> click.Command:
    def ask(dataset: str, dry_run: bool, yes: bool, verbose: bool, as_json: bool, **given: Any) -> int | None:
        from epsilons.dataset.answers import as_table

        with options.open_dataset(dataset) as people:
            asked = options.read_arguments(entry, given, people)
            if dry_run:
                asked.pop("fresh", None)
                _show_plan(people, entry, asked, as_json)
                return None
            if not yes and output.on_terminal() and not _agreed(people, entry, asked):
                return 1
            release, stored = output.ask_once(people, lambda: getattr(people, entry.name)(**asked))
            if as_json:
                output.print_answers(people.remaining(), release, stored, asked.get("where"))
            else:
                output.show_answers(people.remaining(), as_table(release), stored, verbose, asked.get("where"))
        return None

    example = " \\\n    ".join(textwrap.wrap(entry.command, 72, break_on_hyphens=False))
    ask.__doc__ = f"{entry.help}\n\n\b\nExample:\n  {example}"
    taken = [options.dataset_file, *options.own_parameters(entry), *options.option_flags(), *options.SPENDING]
    return click.command(entry.name.replace("_", "-"), short_help=entry.help)(options.apply_all(taken)(ask))


def _agreed(people: Dataset | RemoteDataset, entry: Entry, asked: dict[str, Any]) -> bool:
    """Whether a question may be charged: with its price, where it has one. What is stored or on the roster is free."""
    from epsilons.dataset.attempt import NothingToPlanError

    about, named = "target" if entry.model else "column", dict(asked)
    named.pop("fresh", None)
    try:
        if people._is_answered(read_call(entry, TABLES, (), asked)):
            return True
        plan = people.plan(entry.name, named.pop(about, None), **named, past=False)
    except NothingToPlanError:
        return True
    names = {level.epsilon: level.name for level in people.describe().levels}
    return output.agree(output.tell_price(people.remaining(), names, plan[asked.get("mechanism", "auto")]))


def _show_plan(people: Asking, entry: Entry, asked: dict[str, Any], as_json: bool) -> None:
    """The plan of the question as the command asks it: by its own flags, whatever was answered before."""
    from epsilons.dataset.attempt import NothingToPlanError

    column, where = asked.pop("target" if entry.model else "column", None), asked.get("where")
    try:
        plan = people.plan(entry.name, column, **asked, past=False)
    except NothingToPlanError as nothing:
        told = f"Free. {nothing.rule}"
        output.print_json({"free": nothing.rule, "where": where}) if as_json else output.write(told)
        return
    if as_json:
        output.print_json({**plan.to_dict(), "where": where})
        return
    output.write(output.under(where) + str(plan))
    known: list[Known] = []
    with suppress(PlanError):  # an error may be out of reach by them
        known = [one for one in people.plan(entry.name, column, **asked).known if one.release is not None]
    if known:
        flags = ", ".join(f"--{one.name} {one.value:.3g} (release {one.release})" for one in known)
        output.note(f"Past answers suggest {flags}. The command goes by its own flags alone.")


@click.command(short_help="What a question would cost and how far it would err. Free.")
@options.dataset_file
@click.argument("statistic", type=click.Choice([name.replace("_", "-") for name in CATALOGUE]), metavar="STATISTIC")
@click.argument("column", required=False)
@click.argument("more", nargs=-1, metavar="[Q|K|FEATURES]")
@options.apply_all(options.plan_flags())
@output.as_json
def plan(dataset: str, statistic: str, more: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """What a question would cost and how far it would err, for every mechanism. Free: nothing is charged.

    \b
    Example:
      epsilons plan people.toml mean wage --share 0.1
    """
    entry, context = CATALOGUE[statistic.replace("-", "_")], click.get_current_context()
    # What the statistic's own command takes by place (Q, K, FEATURES) is taken so here, too.
    places = [argument.name for argument in entry.own(TABLES).values() if argument.positional]
    if len(more) > len(places):
        raise click.UsageError(f"Got unexpected extra arguments ({' '.join(more[len(places) :])})", context)
    flags = {flag.name: flag for flag in context.command.params}
    given |= {name: flags[name].type_cast_value(context, text) for name, text in zip(places, more, strict=False)}
    with options.open_dataset(dataset) as people:
        _show_plan(people, entry, options.read_arguments(entry, given, people), as_json)


@click.command(short_help="Ask in SQL, as far as it maps to the statistics.")
@options.dataset_file
@click.argument("query")
@click.option("--share", type=float, help="For all aggregates together; unless given, that of one question.")
@click.option("--keys", "by", multiple=True, metavar="COLUMN=KEY,KEY", help="The groups of a column of GROUP BY.")
@click.option("--bounds", multiple=True, metavar="COLUMN=LOW,HIGH", help="Public bounds of a column.")
@options.apply_all([*options.option_flags(QUERIES), *options.SPENDING])
def sql(
    dataset: str, query: str, share: float | None, dry_run: bool, yes: bool, verbose: bool, as_json: bool, **given: Any
) -> int | None:
    """Ask in SQL: COUNT, SUM, AVG, VAR_POP, MEDIAN, QUANTILE, MIN, MAX, MODE, COVAR_POP and CORR of columns.

    WHERE takes conditions, GROUP BY columns with keys.

    \b
    Example:
      epsilons sql people.toml --bounds wage=0,100 \\
        "SELECT AVG(wage), COUNT(*) FROM people WHERE age >= 18"
    """
    with options.open_dataset(dataset) as people:
        bounds = options.read_bounds(given.pop("bounds"))
        asked = options.read_arguments(None, given, people)
        batch = people.batch(share)
        batch.sql(query, bounds=bounds, keys=asked.pop("by", None), **asked)
        return ask_all(people, batch, output.show_answers, dry_run, yes, verbose, as_json)


def ask_all(
    people: Any, batch: Batch, show: Callable[..., None], dry_run: bool, yes: bool, verbose: bool, as_json: bool
) -> int | None:
    """Ask the questions of a batch, or plan them, and print what comes back; 1 where no yes was said."""
    if dry_run:
        output.print_json(batch.plan().to_dict()) if as_json else output.write(str(batch.plan()))
        return None
    if not _may_ask(batch, yes):
        return 1
    answers, stored = output.ask_once(people, batch.ask)
    if as_json:
        output.print_answers(people.remaining(), answers, stored)
    else:
        show(people.remaining(), answers, stored, verbose)
    return None


def _may_ask(batch: Batch, yes: bool) -> bool:
    """Whether a batch may be charged; on a terminal its plan is shown, and a yes asked for, unless all is free."""
    if yes or not output.on_terminal() or batch.is_answered():
        return True
    plan = batch.plan()
    return not any(charge for _, charge in plan.to_dict()["charges"]) or output.agree(str(plan))


@click.command(short_help="How far preferences and the values of a column are related at most.")
@options.dataset_file
@click.argument("column")
@click.option("--share", type=float, default=0.02, show_default=True, help="At most this part of every grant.")
@click.option("--bounds", type=options.PAIR, help="Public bounds of the column; those of the file unless given.")
@click.option("--spread", type=float, help="Public guess of the standard deviation.")
@click.option("--fresh", is_flag=True, help="Ask anew and pay, also if it was asked before.")
@click.option("--analyst", help="Who asks, for quotas.")
@options.YES
@output.as_json
def relation(dataset: str, column: str, yes: bool, as_json: bool, **given: Any) -> int | None:
    """How far levels' expected means of a column can lie from everyone's: what later means and sums may assume.

    \b
    Example:
      epsilons relation people.toml wage --share 0.02
    """
    with options.open_dataset(dataset) as people:
        asked = options.read_arguments(None, given, people)
        mean = people._as_mean(column, **asked)
        if not yes and output.on_terminal() and not _agreed(people, CATALOGUE["mean"], mean):
            return 1
        found, stored = output.ask_once(people, lambda: people.relation(column, **asked))
        if as_json:
            left = [level.to_dict() for level in people.remaining().levels]
            output.print_json({**found.to_dict(), "left": left, "stored": stored})
            return None
        output.write(str(found))
        flags = list_flags(found)
        flags += ["--missing center"] if found.imputed else []
        flags += [f"--bounds {','.join(f'{end:g}' for end in asked['bounds'])}"] if "bounds" in asked else []
        output.note(f"In a command, of a mean or a sum without a condition: {' '.join(flags)}")
        return None


def list_flags(found: Relation) -> list[str]:
    """What to assume, in spreads: rounded up, whichever way the spread was, since less would promise too much.

    A spread is named only if it was given: a later answer takes it at its word, and the default one is its own.
    """
    spread = f"{found.spread:.6g}" if found.given else repr(found.spread)
    bound = found.distance / max(float(spread), 1e-300)
    up = Context(prec=4, rounding=ROUND_CEILING).create_decimal_from_float(bound)
    return [f"--assume {float(up):.4g}", *([f"--spread {spread}"] if found.given else [])]


@click.command(short_help="How far answers will be off if so many questions are asked, under each kind of account.")
@options.dataset_file
@click.option("--questions", type=int, help="How many, all alike; those of the file unless given, or 10.")
@click.option("--column", help="Of which a mean is told; without one, as a part of the width of any bounds.")
@click.option("--delta", type=float, help="That of a concentrated account; the ledger's own, or 1e-6.")
@output.as_json
def budget(dataset: str, questions: int | None, column: str | None, delta: float | None, as_json: bool) -> None:
    """Say what error a count or a mean will have if so many questions are asked. Free; also before registering.

    \b
    Example:
      epsilons budget people.toml --questions 200
    """
    from epsilons.dataset import Dataset
    from epsilons.dataset.preview import foresee_budget

    with output.preparing(f"Reading {dataset}"), refusing():
        try:
            people = options.open_remote(dataset) or Dataset.from_toml(dataset)
        except LedgerError:  # not registered yet: the file tells
            found = foresee_budget(dataset, questions, column, delta)
        else:
            with people:
                found = people.budget(questions, column=column, delta=delta)
    output.print_json(found.to_dict()) if as_json else output.write(str(found))


#: The commands by the names that users type.
_OTHERS = plan, relation, budget, sql
COMMANDS = {str(command.name): command for command in (*map(_command, CATALOGUE.values()), *_OTHERS)}
