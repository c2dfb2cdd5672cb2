"""One self-contained page: no scripts, no fonts, no pictures from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

import epsilons as eps
from epsilons.demo import charts, words
from epsilons.demo.budgets import Books
from epsilons.demo.people import GROUPS, RECIPE, Population
from epsilons.demo.questions import Answered
from epsilons.demo.terminal import show_charge


def write_report(path: Path, people: Population, answered: tuple[Answered, ...], books: Books) -> None:
    """Write the page; what stood there before is replaced."""
    page = make_report(people, answered, books)
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise eps.DataError(
            f"The report cannot be written to {path}: {error.strerror}.", suggest="--out FILE"
        ) from None


def make_report(people: Population, answered: tuple[Answered, ...], books: Books) -> str:
    """The page as text."""
    by_name = {one.asked.statistic: one for one in answered}
    style = files("epsilons.demo").joinpath("report.css").read_text(encoding="utf-8")
    sections = (
        _head(people, answered),
        _people(people),
        _answers(answered),
        _section(
            "mean",
            "The mean wage, answered in every way",
            "Each dot is one private answer, each bar its 95% interval: the narrower, the better. The grey line is the "
            "truth. An arrow marks an answer that lies outside the picture: stretching shrinks what strict people say, "
            "so its answer is drawn to the middle of the bounds ($1,000). Its bar is corrected for that.",
            _figure(charts.chart_mean(by_name["mean"])),
        ),
        _section(
            "histogram",
            "Who earns what",
            "The private answer hides every single person, yet the shape of the wages stays.",
            _figure(charts.chart_histogram(by_name["histogram"])),
        ),
        _section(
            "consent",
            "What consent is worth",
            "How accurate the mean wage would be if some of the strict people asked for less privacy. Looking this up "
            "costs nothing: it needs no data. Under minimum nothing improves until the very last strict person moves; "
            "the others gain with everyone who does.",
            _figure(charts.chart_consent(by_name["mean"])),
        ),
        _paid(people, by_name["mean"]),
        _left(books),
        _promise(answered),
        _glossary(),
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<title>epsilons: the demo</title>\n'
        f"<style>\n{style}</style>\n"
        "</head>\n<body>\n<main>\n" + "\n".join(sections) + f"\n</main>\n{_foot()}\n</body>\n</html>\n"
    )


def _head(people: Population, answered: tuple[Answered, ...]) -> str:
    mean = next(one for one in answered if one.asked.statistic == "mean")
    classic = next(answer for answer in mean.answers if answer.mechanism == "minimum")
    tiles = (
        (f"{len(people):,}", "people, each with their own epsilon"),
        (f"{mean.asked.show(mean.best.release.value)}", f"mean weekly wage, answered by {mean.best.mechanism}"),
        (f"± {mean.asked.show(mean.best.release.error)}", "its predicted error"),
        (
            f"± {mean.asked.show(classic.release.error)}",
            "predicted error if all were treated like the strictest person",
        ),
    )
    shown = "".join(f"<li><b>{escape(number)}</b><span>{escape(text)}</span></li>" for number, text in tiles)
    return (
        f'<header><p class="name">epsilons</p><h1>{escape(words.TAGLINE)}</h1>'
        "<p>Five questions about real wages, answered so that no single person shows, while everyone decides for "
        f'themselves how private to be.</p><ul class="tiles">{shown}</ul></header>'
    )


def _people(people: Population) -> str:
    text = (
        f"<p>{escape(words.DATA.format(people=len(people)))}</p>"
        f'<p class="note"><b>{escape(words.SIMULATED)}</b> {escape(RECIPE)}</p>'
        f"<p>{escape(words.NOISE)} {escape(words.SHARE)}</p>"
    )
    below = _figure(charts.chart_preferences(people))
    return f'<section id="people"><h2>How private people asked to be</h2>{text}{below}</section>'


def _answers(answered: tuple[Answered, ...]) -> str:
    parts = [
        '<section id="answers"><h2>Five questions</h2>',
        f"<p>{escape(words.PREDICTED)} <em>{escape(words.TRUE_ERROR)}</em> The first row is what the plan thinks best, "
        "and what the library takes by itself. Charged: the least and the most epsilon that anybody paid. "
        f"{escape(words.COMPARED)}</p>",
    ]
    for one in answered:
        asked, single = one.asked, not isinstance(one.truth, dict)
        head = ["mechanism", *(["answer"] if single else []), "predicted error", "true error (demo only)"]
        rows = []
        for answer in one.answers:
            cells = [asked.show(answer.release.value)] if single else []
            cells += [asked.show(answer.release.error), asked.show(answer.true_error)]
            rows.append([answer.mechanism, *cells, f"{answer.used:.0%}", show_charge(answer)])
        truth = f" The truth, for comparison: {asked.show(one.truth)}." if single else ""
        parts.append(f"<h3>{escape(asked.words)}</h3><p>Unit: {escape(asked.unit)}. {escape(asked.remark)}{truth}</p>")
        parts.append(_table([*head, "people used", "charged (ε)"], rows, one.praise))
    listed = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>"
        for name, text in words.MECHANISMS.items()
        if any(answer.mechanism == name for one in answered for answer in one.answers)
    )
    return "".join(parts) + f"<h3>What the mechanisms do</h3><dl>{listed}</dl></section>"


def _paid(people: Population, one: Answered) -> str:
    head = [
        "mechanism",
        *(f"{group.name}, average" for group in GROUPS),
        "lowest of all",
        "highest of all",
        "people used",
    ]
    granted = [f"{people.average(place):.3f}" for place in range(len(GROUPS))]
    rows = [["(granted)", *granted, f"{people.epsilons.min():.4g}", f"{people.epsilons.max():.4g}", "100%"]]
    for answer in one.answers:
        charges = dict(answer.release.charges)
        average = [f"{people.average(place, charges):.3f}" for place in range(len(GROUPS))]
        low, high = answer.charged
        rows.append([answer.mechanism, *average, f"{low:.3g}", f"{high:.3g}", f"{answer.used:.0%}"])
    return _section(
        "paid",
        "Who paid what for the mean wage",
        "The first line is what people granted, in epsilon; below it is what each mechanism charged them. Nobody pays "
        "more than a tenth of what they granted, and everyone at the same epsilon pays the same.",
        _table(head, rows),
    )


def _left(books: Books) -> str:
    head = ["group", "people", "granted, average", "spent", "left", "more such questions"]
    rows = [
        [g.name, f"{g.people:,}", f"{g.granted:.3f}", f"{g.spent:.3f}", f"{g.left:.3f}", g.more] for g in books.groups
    ]
    text = f"{words.LEFT.format(releases=books.releases)} {words.AGAIN.format(entries=books.entries)}"
    figures = _figure(charts.chart_spending(books)) + _figure(charts.chart_left(books))
    return _section("left", "What is left", text, figures + _table(head, rows))


def _promise(answered: tuple[Answered, ...]) -> str:
    promise: eps.Guarantee = answered[0].best.release.guarantee
    lines = (*promise.caveats, *words.NOT_PROMISED)
    listed = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return (
        f'<section id="promise"><h2>What is promised, and what is not</h2><p class="note"><b>{escape(promise.kind)}, '
        f"neighbours: {escape(promise.neighbors)}.</b> {escape(words.NEIGHBORS[promise.neighbors])}</p>"
        f"<h3>What is not promised</h3><ul>{listed}</ul></section>"
    )


def _glossary() -> str:
    listed = "".join(f"<dt>{escape(word)}</dt><dd>{escape(text)}</dd>" for word, text in words.GLOSSARY.items())
    return f'<section id="glossary"><h2>Words</h2><dl>{listed}</dl></section>'


def _foot() -> str:
    return (
        f"<footer><p>Made by <code>python -m epsilons.demo</code>, epsilons {escape(eps.__version__)}. Every run draws "
        "fresh noise, so another run shows other answers.</p></footer>"
    )


def _section(name: str, title: str, text: str, below: str) -> str:
    return f'<section id="{name}"><h2>{escape(title)}</h2><p>{escape(text)}</p>{below}</section>'


def _figure(chart: tuple[str, str]) -> str:
    svg, text = chart
    return f"<figure>{svg}<details><summary>The picture in words</summary><p>{escape(text)}</p></details></figure>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], praise: str = "") -> str:
    """A table that scrolls sideways on a small screen; praise marks the first row."""
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    body = []
    for place, row in enumerate(rows):
        first, *rest = row
        marked = bool(praise) and place == 0
        name = f"{escape(first)} <small>{escape(praise)}</small>" if marked else escape(first)
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        body.append(f'<tr{" class=best" if marked else ""}><th scope="row">{name}</th>{cells}</tr>')
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'
