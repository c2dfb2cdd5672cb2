"""The answers as tables for a terminal, and the texts that the report shares."""

from collections.abc import Iterable

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from epsilons.demo.people import GROUPS, RECIPE, Population
from epsilons.demo.questions import DemoResult, LedgerSummary

#: The width of a bar in characters.
_BAR = 20

_TEXTS = {
    "tagline": "Differential privacy where everyone sets their own epsilon.",
    "data": "Weekly wages, schooling and part-time work of {people:,} men in the United States, from the Current "
    "Population Survey of March 1988 (data set CPS1988 of the R package AER), in dollars of 1992. The data are public "
    "and real.",
    "simulated": "The preferences are simulated: the survey did not ask for any.",
    "recipe": RECIPE,
    "noise": "The noise is real: it comes from the operating system's generator and is never seeded, so every run "
    "gives other answers.",
    "share": "Every question may use a tenth of what each person granted. Charges are written to a ledger, durably, "
    "before any wage is read. The ledger adds them up; people with nothing left are no longer used.",
    "compared": "The first row of each table is the answer that was released and charged. The others are for "
    "comparison: each of those mechanisms has a ledger of its own here, as if it alone had been used. Do not do that "
    "with real people.",
    "predicted_error": "Predicted error: how far off an answer is expected to be (root mean square), known before "
    "anything is asked, from public facts alone.",
    "true_error": "True error: how far this answer lies from the truth. A demo may look; an analyst could not.",
    "charged": "Charged: the lowest and the highest epsilon that one person paid.",
    "balance": "What the ledger says after {releases} answers, on average over each group. The last column says how "
    "many more questions that charge like the last one there could be.",
    "asked_again": "Asked again, the mean wage is the same to the last digit: the stored answer, at no charge. The "
    "ledger's {entries} entries were recounted from the first one, and add up.",
    "promise": "Whatever is published, it would have been almost as likely if any one person's answer had been "
    "{other}. “Almost” is measured by epsilon, and each person chose their own: the chance of any result changes by a "
    "factor of at most e^ε, which is 1.01 for ε = 0.01 and 2.72 for ε = 1.",
}

NOT_PROMISED = (
    "What people as a whole are like is not hidden. If part-time workers earn less on average, everyone may learn it, "
    "also about people who took no part.",
    "Several answers about the same people add up. The ledger adds them and stops where a person's grant ends; it does "
    "not know what is asked of the same people elsewhere.",
    "How long a computation takes may say something about the data: timing is not protected.",
    "The error bars hold if nobody's choice of epsilon says much about their values: no level's expected mean lies "
    "further than 0.3 spreads from everyone's (`assume`). The made-up preferences here say nothing about values, so "
    "most answers err less. The privacy holds either way.",
)


def fill_texts(people: Population, results: tuple[DemoResult, ...], ledger: LedgerSummary) -> dict[str, str]:
    """The texts of every output, by name, with the numbers of this run."""
    other = {"absent": "missing", "replace": "another"}[results[0].best.release.guarantee.neighbors]
    facts = {"people": len(people), "releases": len(ledger.spending), "entries": ledger.entries, "other": other}
    return {name: text.format(**facts) for name, text in _TEXTS.items()}


def print_all(
    console: Console, people: Population, results: tuple[DemoResult, ...], ledger: LedgerSummary, report: str
) -> None:
    texts, promise = fill_texts(people, results, ledger), results[0].best.release.guarantee
    points = Table.grid(padding=(0, 1))
    for line in (*promise.caveats, *NOT_PROMISED):
        points.add_row("-", line)
    simulated, again = Text(texts["simulated"], style="bold"), Text(texts["asked_again"], style="dim")
    blocks: list[Iterable[RenderableType]] = [
        [Text.assemble(("epsilons", "bold"), ": ", texts["tagline"])],
        [texts["data"], simulated, *(texts[name] for name in ("recipe", "noise", "share"))],
        [_groups(people)],
        *map(_answers, results),
        [Text(texts[name], style="dim") for name in ("compared", "predicted_error", "true_error", "charged")],
        [_balance(ledger, texts["balance"]), again],
        [Text(f"What is promised ({promise.kind})", style="bold"), texts["promise"]],
        [Text("What is not", style="bold"), points],
    ]
    for block in blocks:
        console.print(Group(*block))
        console.print()
    console.print(Text.assemble("The same with pictures: ", (report, "bold")), soft_wrap=True)


def _table(title: str, heads: list[str], left: tuple[int, ...] = (0,), caption: str | None = None) -> Table:
    """An empty table; columns stand to the right but for those in `left`."""
    table = Table(title=title, caption=caption, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.title_justify = table.caption_justify = "left"
    table.title_style, table.caption_style = "bold", "dim"
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place in left else "right", no_wrap=True)
    return table


def _groups(people: Population) -> Table:
    table = _table("How private people asked to be", ["group", "people", "epsilon", "which means"], left=(0, 3))
    for place, group in enumerate(GROUPS):
        table.add_row(group.name, f"{len(people.granted(place)):,}", group.range, group.meaning)
    return table


def _answers(one: DemoResult) -> list[RenderableType]:
    question = one.question
    truth = f"; truth: {question.show(one.truth)}" if one.is_number else ""
    heads, (best, *rows) = one.table()
    table = _table(f"{question.text} ({question.unit}{truth})", heads, caption=f"* {one.praise}. {one.remark}")
    table.add_row(f"{best[0]} *", *best[1:], style="bold green")
    for row in rows:
        table.add_row(*row)
    return [table] if one.is_number else [table, "", _classes(one)]


def _classes(one: DemoResult) -> Padding:
    heads = ["weekly wage", "private answer", "95% interval", "truth"]
    table = _table(f"The classes, answered by {one.best.mechanism}", heads, left=())
    for key, value in one.best.release.value.items():
        around = "–" if one.best.interval is None else "{:,.0f} to {:,.0f}".format(*one.best.interval[key])
        table.add_row("${:,.0f} to ${:,.0f}".format(*key), one.question.show(value), around, f"{one.truth[key]:,}")
    return Padding(table, (0, 0, 0, 2))


def _balance(ledger: LedgerSummary, caption: str) -> Table:
    heads = ["group", "granted", "spent", "left", "", "more such\nquestions"]
    table = _table("What is left", heads, left=(0, 4), caption=caption)
    for group in ledger.groups:
        filled = round(group.part * _BAR)
        bar = Text("█" * filled, style="green") + Text("░" * (_BAR - filled), style="dim")
        amounts = (f"{amount:.3f}" for amount in (group.granted, group.granted - group.left, group.left))
        table.add_row(group.name, *amounts, bar, group.more)
    return table
