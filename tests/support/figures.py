"""The figures of reliability at full size: which there are, and the page that `make soak` writes of them.

A soak test belongs to a figure by its mark, `@pytest.mark.figure("figure_3_draws")`, which is a keyword of its own:
`make soak ARGS="-k figure_3"`. It says how much it held by `record_property("size", 2)`; the sizes of all tests of
a figure add up. A row of the page is written once all tests of the figure were run, and says so if one of them failed.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Figure:
    """What is held, in which unit it is counted, and what to say of it."""

    number: int
    held: str
    unit: str
    result: str = "all hold"


FIGURES = {
    "figure_1_overspending": Figure(
        1,
        "16 processes compete for single people, and for a crowd, with room for exactly 100 charges each: exactly 100 "
        "are accepted, on SQLite and on PostgreSQL; recounted in full, here and elsewhere",
        "attempts",
        "no overspend",
    ),
    "figure_2_kills": Figure(
        2,
        "processes killed (-9) at named places, on SQLite and on PostgreSQL: every answer that left is in the ledger",
        "kills",
        "none missing",
    ),
    "figure_3_enumeration": Figure(
        3,
        "every mechanism, exact enumeration: no one loses more than they are charged",
        "pairs of data sets of three and four people",
    ),
    "figure_3_concentrated": Figure(
        3,
        "accounts that count rho: squared reaches over variances in exact fractions, and divergences of order "
        "statistics at several orders, over all neighbours: no one loses more rho than they are charged",
        "mechanisms, statistics and rosters",
    ),
    "figure_3_draws": Figure(
        3,
        "every mechanism, draws on its worst pairs: the 99.9% lower bound of the loss stays within the charge",
        "pairs, 1,000,000 draws of each side",
    ),
    "figure_3_planted": Figure(
        3, "an audit that accepts the honest code refutes the planted bug", "planted bugs", "all caught"
    ),
    "figure_4_arrays": Figure(
        4,
        "frozen noise, arrays: same control flow, sums and answers within the reach, costs within the charge, the same "
        "coins for all others; NaN, null, inf, extremes of int64, ties, other orders",
        "random pairs",
    ),
    "figure_4_tables": Figure(
        4,
        "the same on tables, with several rows a person, conditions, groups, parts of dates and pairs of columns",
        "random pairs",
    ),
    "figure_5": Figure(
        5,
        "ledgers that were restored, forked, or edited by one bit: refused, on SQLite and on PostgreSQL",
        "ledgers",
        "all refused",
    ),
    "figure_6": Figure(
        6,
        "one request to a gateway, repeated, also at once and after its worker has died: one charge, one answer",
        "repeats",
    ),
    "figure_7_duckdb": Figure(
        7,
        "a question, often a wrong one, to neighbouring tables, which are frames, files of text, sheets or tables of a "
        "server: same status, same text, same charge",
        "pairs of tables, 4 questions to each",
    ),
    "figure_7_spark": Figure(
        7,
        "the same over both engines: Spark and DuckDB, each on both tables",
        "questions to the tables of 50 pairs",
    ),
    "figure_8": Figure(
        8,
        "hostile conditions, from a grammar and a list of injections: nothing outside the table is read, no text of "
        "the engine is seen",
        "conditions",
    ),
    "figure_9": Figure(
        9,
        "exact samplers, by chi-square: discrete Laplace, discrete Gaussian, coins, and draws from segments",
        "laws, 10,000,000 draws of each",
    ),
    "figure_10": Figure(
        10,
        "mixed steps of a ledger, changes of mind included, against a plain model: granted less spent less reserved is "
        "what remains, exactly, in memory, on SQLite and on PostgreSQL",
        "steps",
    ),
    "figure_10_lasting": Figure(
        10,
        "the same of accounts that count rho, with grants that are renewed by week, month and year, by a clock that "
        "goes forward and back",
        "steps",
    ),
    "figure_11_schedules": Figure(
        11,
        "random schedules of dropouts, replays, retries, cheaters, restarts, and stores that are put back: no answer "
        "counted twice, none lost that everyone acknowledged, no batch below the minimum, no sum drawn again, every "
        "older store refused",
        "schedules",
    ),
    "figure_11_views": Figure(
        11,
        "what any all but one of 2 to 5 aggregators hold of 20,000 owners with each answer, by chi-square: uniform, "
        "and the same whatever the answer",
        "views",
    ),
    "figure_12_gateway": Figure(
        12,
        "requests to a gateway, made up from its OpenAPI document, by every role: no fault of its own, refusals in one "
        "shape",
        "requests",
    ),
    "figure_12_pages": Figure(
        12,
        "forms and addresses of a gateway's pages, with fields that nobody means: no fault of its own",
        "forms",
    ),
    "figure_12_aggregator": Figure(
        12,
        "requests to an aggregator, made up from its OpenAPI document, by its coordinator and by others: no fault of "
        "its own, and nothing changed by who has no token",
        "requests",
    ),
    "figure_12_witness": Figure(
        12,
        "requests to a witness, made up from its OpenAPI document, and signed by its ledgers, by others and by nobody, "
        "changed and cut: no fault of its own, and no head that goes back or that its ledger did not sign",
        "requests",
    ),
    "figure_13_gateway": Figure(
        13,
        "two worlds behind a gateway that differ in one private bit, hostile conditions and ones that take 5 ms more "
        "on it included: 200 answers of each are timed, by what is worked and waited for, with a drawn network, and "
        "no two-sample test (signed ranks, Kolmogorov-Smirnov, the earliest tenth and twentieth; Holm-corrected, 1%) "
        "tells them apart; planted leaks of 5 ms are caught",
        "pairs of worlds",
    ),
    "figure_13_spark": Figure(13, "the same where Spark reads the rows", "pairs of worlds"),
    "figure_14": Figure(
        14,
        "everyone's budget is spent, then the same people are declared anew: refused, or charged to their old accounts",
        "ways (ids, spelling, kind, ledger, directory, label, file, snapshot, terms, consent, process)",
        "no fresh budget",
    ),
    "figure_15": Figure(
        15,
        "newcomers and changes of mind at 256 levels and a question a day: no refusal, at most 4,096 cohorts; opening "
        "and asking take at most 1.5 times as long in the last hundred days as in the first, by the processor's time "
        "and by the steps of the database; recounted in full, here and elsewhere",
        "days",
    ),
    "figure_15_renewals": Figure(
        15,
        "the same with grants that are renewed each month, once each, though the clock is ten days behind every "
        "seventh day",
        "days",
    ),
    "figure_16": Figure(
        16,
        "a ledger is put back to an older copy while 8 processes ask, some of them killed: refused to every one of "
        "them, and to whoever comes new, through the witness; on SQLite and on PostgreSQL",
        "rollbacks",
        "all refused",
    ),
    "figure_17": Figure(
        17,
        "sources (files of text, sheets, databases, tables of a server) that grow, shrink or are replaced while they "
        "are being registered: nobody above the cap, everything from one reading; also while another process writes "
        "them",
        "schedules",
    ),
    "figure_18_papers": Figure(
        18,
        "the paper's default count, of which a person moves 1, at assume 0, .3 and nothing: RMSE at most 9.9, 22 and "
        "33 over 1,000 rosters; its median without an interval, by its law; mean widths of quantile intervals at "
        "most 16 RMSE at for_interval .4, 9 at .6, over all settings together",
        "figures",
    ),
    "figure_18_intervals": Figure(
        18,
        "95% intervals hold the truth in at least 93% of the answers, no stated error is more than 1.5 times too small",
        "settings, 1,600 answers in each",
    ),
    "figure_18_errors": Figure(
        18,
        "default guesses, values as related as is assumed: stated errors within 25% of real ones in 90% of random "
        "settings (quantiles: a factor 1.5; where values have gaps at most 1.5 times too small, but for three standard "
        "errors, in 90%); the paper's count and median err as little as they are held to",
        "settings",
    ),
    "figure_18_engines": Figure(
        18, "the same intervals and errors as on arrays, with the same noise", "questions to DuckDB and to Spark"
    ),
}

START, END = "<!-- figures: written by make soak -->", "<!-- end of figures -->"
NOT_RUN = ("", "not run yet at this size")


class FigurePage:
    """Watches a run and, where there is a page, renews the rows of the figures that were run in full."""

    def __init__(self, page: Path | None) -> None:
        if page is not None and not page.is_file():
            raise pytest.UsageError(f"There is no page {page} whose rows could be renewed.")
        self.page = page
        self._asked: Counter[str] = Counter()
        self._run: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._size: Counter[str] = Counter()

    @pytest.hookimpl(tryfirst=True)  # before -k and -m leave tests out
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if (mark := item.get_closest_marker("figure")) is not None:
                key = mark.args[0]
                assert key in FIGURES, f"{item.nodeid}: no such figure"
                item.extra_keyword_matches.add(key)
                item.user_properties.append(("figure", key))
                self._asked[key] += 1

    def pytest_runtest_logreport(self, report: Any) -> None:
        key = dict(report.user_properties).get("figure")
        if key is None or report.skipped or not (report.when == "call" or report.failed):
            return
        self._run[key] += 1
        self._failed[key] += report.failed
        self._size[key] += sum(number for name, number in report.user_properties if name == "size")

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        # A single test by its address is not all of a figure, though nothing else was collected.
        single = any("::" in argument for argument in session.config.args)
        if self.page is not None and not single and not hasattr(session.config, "workerinput"):
            self.page.write_text(renew(self.page.read_text(encoding="utf-8"), self.results()), encoding="utf-8")

    def results(self) -> dict[str, tuple[str, str]]:
        """{figure: (size, result)} of those whose tests were all run, and of those of which one failed."""
        done = {}
        for key, asked in self._asked.items():
            if self._run[key] == asked or self._failed[key]:
                failed = f"**does not hold**: {self._failed[key]} of {asked} tests failed"
                result = failed if self._failed[key] else FIGURES[key].result
                done[key] = (f"{self._size[key]:,} {FIGURES[key].unit}", result)
        return done


def renew(text: str, results: dict[str, tuple[str, str]]) -> str:
    """The page with new results; rows of figures that were not run stay as they were."""
    before, _, rest = text.partition(START)
    table, mark, after = rest.partition(END)
    assert mark, f"the page has no {START} and {END}"
    rows = {}
    for line in table.strip().splitlines()[2:]:
        *_, size, result, command = (cell.strip() for cell in line.strip("|").split(" | "))
        if found := re.search(r"figure_\w+", command):
            rows[found[0]] = (size, result)
    rows |= results
    lines = ["| figure | what is held | size | result | command |", "|:-:|---|---|---|---|"]
    for key, figure in FIGURES.items():
        size, result = rows.get(key, NOT_RUN)
        lines.append(f'| {figure.number} | {figure.held} | {size} | {result} | `make soak ARGS="-k {key}"` |')
    return f"{before}{START}\n\n" + "\n".join(lines) + f"\n\n{END}{after}"
