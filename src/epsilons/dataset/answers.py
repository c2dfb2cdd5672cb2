"""Several releases side by side, by name: what a batch and a query in SQL give."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from epsilons.arguments.reading import tell_centred
from epsilons.display import Sheet, Shown, show, show_errors, show_key
from epsilons.errors import EpsilonsError
from epsilons.release.answer import Release, cite, tell_question

if TYPE_CHECKING:
    import pandas
    import pyarrow


#: Where the name of a statistic ends and its bounds or features begin.
_BOUNDED = re.compile(r" in \[| on ")


class Answers(Shown, Mapping[str, Release]):
    """{name: release}. With groups one row per key; `keys` names the columns of the groups."""

    def __init__(self, releases: Mapping[str, Release], keys: tuple[str, ...] = ()) -> None:
        self._releases = dict(releases)
        self.key_names = keys

    def __getitem__(self, name: str) -> Release:
        return self._releases[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._releases)

    def __len__(self) -> int:
        return len(self._releases)

    @property
    def grouped(self) -> bool:
        """Whether there is one row per group."""
        return bool(self.key_names) and any(isinstance(release.value, dict) for release in self._releases.values())

    def rows(self) -> list[dict[str, Any]]:
        """One dict per group, in the caller's order; a single one without groups."""
        if not self.grouped:
            return [{name: release.value for name, release in self._releases.items()}]
        rows = []
        for key in self._keys():
            parts = key if isinstance(key, tuple) and len(self.key_names) > 1 else (key,)
            answers = {name: release.value[key] for name, release in self._releases.items()}
            rows.append({**dict(zip(self.key_names, parts, strict=True)), **answers})
        return rows

    def _keys(self) -> list[Any]:
        return list(next(iter(self._releases.values())).value)

    @property
    def charges(self) -> dict[float, float]:
        """{granted epsilon: what all answers together charged}."""
        found: dict[float, float] = {}
        for release in self._releases.values():
            for granted, spent in release.charges.items():
                found[granted] = round(found.get(granted, 0.0) + spent, 9)
        return found

    def to_arrow(self) -> pyarrow.Table:
        """One row per group."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.rows())

    def to_pandas(self) -> pandas.DataFrame:
        """One row per group, as a pandas frame."""
        return self.to_arrow().to_pandas()

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        return {name: release.to_dict() for name, release in self._releases.items()}

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Heads and cells for people: the group, then each answer with its error bar beside it."""
        bars = {name: interval_of(release) for name, release in self._releases.items()}
        keyed = self.key_names if self.grouped else ()
        rows = []
        for key, row in zip(self._keys() if self.grouped else [None], self.rows(), strict=True):
            cells = [show_key(row[name]) for name in keyed]
            for name, bar in bars.items():
                value, interval = row[name], bar.get(key) if isinstance(bar, dict) else bar
                number = isinstance(value, (int, float)) and not isinstance(value, bool) and not self[name].chosen
                shown = "–" if interval is None else f"{show(interval[0])} to {show(interval[1])}"
                cells += [show(value) if number else show_key(value), shown]
            rows.append(cells)
        return [*keyed, *(text for name in self for text in (name, "95% interval"))], rows

    def sheets(self) -> list[Sheet]:
        notes = []
        for name, release in self.items():
            treated = tell_centred(release.guarantee.caveats)
            notes.append(f"{name}: {show_errors(release.error)} ({release.mechanism}){treated}")
            notes += [f"{name}: {release.details['quality']}"] if "quality" in release.details else []
        holds = " and ".join(dict.fromkeys(release.assumption for release in self.values()))
        cited = cite(*self.values())
        return [Sheet("", *self.table(), [*notes, f"Condition: {holds}.", *([f"{cited}."] if cited else [])])]

    __repr__ = Shown.__str__


def as_table(release: Release) -> Answers:
    """One answer as a table: its value, or one for each group, bin or coefficient."""
    keys, title = release.by, tell_question(_BOUNDED.split(release.statistic)[0], release.column, "", ())
    if release.statistic.startswith("histogram"):
        if len(keys) > 1:  # ((group, group), bin)
            flat = {(*group, cell): number for (group, cell), number in release.value.items()}
            release = replace(release, value=flat)
        title, keys = "rows", (*keys, release.column)
    elif release.statistic.startswith("quantiles"):
        if len(keys) > 1:  # ((group, group), q)
            release = replace(release, value={(*group, q): number for (group, q), number in release.value.items()})
        title, keys = release.column or "quantile", (*keys, "q")
    elif isinstance(release.value, dict) and not keys:  # a model; or groups of a release that did not yet name them
        keys = ("coefficient" if " on " in release.statistic else "group",)
    return Answers({title: release}, keys)


def interval_of(release: Release) -> Any:
    """Its 95% interval, or one for each key; None where no honest one exists."""
    try:
        return release.interval(0.95)
    except EpsilonsError:
        return None
