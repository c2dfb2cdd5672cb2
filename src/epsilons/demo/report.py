"""One self-contained page: no scripts, no fonts, no pictures from elsewhere. Its frame is `report.html`."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

import epsilons as eps
from epsilons.demo import charts, terminal
from epsilons.demo.people import GROUPS, Population
from epsilons.demo.questions import DemoResult, LedgerSummary


def write_report(path: Path, people: Population, results: tuple[DemoResult, ...], ledger: LedgerSummary) -> None:
    frame = Template(files("epsilons.demo").joinpath("report.html").read_text(encoding="utf-8"))
    by_name = {one.question.statistic: one for one in results}
    mean, promise = by_name["mean"], results[0].best.release.guarantee
    minimum = next(answer for answer in mean.answers if answer.mechanism == "minimum")
    texts = {
        **terminal.fill_texts(people, results, ledger),
        "people": f"{len(people):,}",
        "mean": mean.question.show(mean.best.release.value),
        "mechanism": mean.best.mechanism,
        "error": mean.question.show(mean.best.predicted_error),
        "minimum_error": mean.question.show(minimum.predicted_error),
        "kind": promise.kind,
        "neighbors": promise.neighbors,
        "version": eps.__version__,
    }
    parts = {
        "chart_preferences": _figure(*charts.chart_preferences(people)),
        "answers": "\n".join(map(_answers, results)),
        "chart_mean": _figure(*charts.chart_mean(mean)),
        "chart_histogram": _figure(*charts.chart_histogram(by_name["histogram"])),
        "chart_consent": _figure(*charts.chart_consent(mean)),
        "paid": _paid(people, mean),
        "chart_spending": _figure(*charts.chart_spending(ledger)),
        "chart_left": _figure(*charts.chart_left(ledger)),
        "left": _balance(ledger),
        "chart_budget": _figure(*charts.chart_budget(ledger)),
        "not_promised": "".join(f"<li>{escape(t)}</li>" for t in (*promise.caveats, *terminal.NOT_PROMISED)),
    }
    page = frame.substitute({name: escape(text) for name, text in texts.items()}, **parts)
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        what = f"The report cannot be written to {path}: {error.strerror}."
        raise eps.DataError(what, suggest="--out FILE") from None


def _figure(svg: str, text: str) -> str:
    return f"<figure>{svg}<details><summary>The picture in words</summary><p>{escape(text)}</p></details></figure>"


def _answers(one: DemoResult) -> str:
    question = one.question
    truth = f" The truth, for comparison: {question.show(one.truth)}." if one.is_number else ""
    text = f"<p>Unit: {escape(question.unit)}. {escape(one.remark)}{truth}</p>"
    return f"<h3>{escape(question.text)}</h3>{text}{_table(*one.table(), one.praise)}"


def _paid(people: Population, one: DemoResult) -> str:
    places = range(len(GROUPS))
    heads = ["mechanism", *(f"{group.name}, average" for group in GROUPS), "lowest", "highest", "people used"]
    granted = [f"{people.average(place):.3f}" for place in places]
    rows = [["(granted)", *granted, f"{people.epsilons.min():.4g}", f"{people.epsilons.max():.4g}", "100%"]]
    for answer in one.answers:
        average = [f"{people.average(place, answer.release.charges):.3f}" for place in places]
        rows.append([answer.mechanism, *average, *(f"{e:.3g}" for e in answer.charged), f"{answer.used:.0%}"])
    return _table(heads, rows)


def _balance(ledger: LedgerSummary) -> str:
    heads = ["group", "people", "granted, average", "spent", "left", "more such questions"]
    rows = []
    for group in ledger.groups:
        amounts = (f"{amount:.3f}" for amount in (group.granted, group.granted - group.left, group.left))
        rows.append([group.name, f"{group.people:,}", *amounts, group.more])
    return _table(heads, rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], praise: str = "") -> str:
    """A table that scrolls sideways on a small screen; praise marks the first row."""
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in heads)
    body = ""
    for place, (first, *rest) in enumerate(rows):
        best = place == 0 and praise
        name = f"{escape(first)} <small>{escape(praise)}</small>" if best else escape(first)
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        body += f'<tr{" class=best" if best else ""}><th scope="row">{name}</th>{cells}</tr>'
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
