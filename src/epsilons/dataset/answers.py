"""Several releases side by side, by name: what a batch and a query in SQL give."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from epsilons.display import html_table, show, show_key, text_table
from epsilons.release import Release

if TYPE_CHECKING:
    import pandas
    import pyarrow


class Answers(Mapping[str, Release]):
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

    def rows(self) -> list[dict[str, Any]]:
        """One dict per group, in the caller's order; a single one without groups."""
        grouped = [release for release in self._releases.values() if isinstance(release.value, dict)]
        if not grouped or not self.key_names:
            return [{name: release.value for name, release in self._releases.items()}]
        rows = []
        for key in grouped[0].value:
            parts: tuple[Hashable, ...] = key if isinstance(key, tuple) and len(self.key_names) > 1 else (key,)
            row = dict(zip(self.key_names, parts, strict=True))
            row |= {name: release.value[key] for name, release in self._releases.items()}
            rows.append(row)
        return rows

    def to_arrow(self) -> pyarrow.Table:
        """One row per group."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.rows())

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a pandas frame."""
        return self.to_arrow().to_pandas()

    def to_dict(self) -> dict[str, Any]:
        """Plain values that survive JSON."""
        return {name: release.to_dict() for name, release in self._releases.items()}

    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = self.rows()
        return list(rows[0]), [[_cell(value) for value in row.values()] for row in rows]

    def __str__(self) -> str:
        head, rows = self._table()
        errors = [f"{name}: ± {show(release.error)} ({release.mechanism})" for name, release in self.items()]
        return "\n".join([text_table(head, rows), "", *errors])

    def _repr_html_(self) -> str:
        head, rows = self._table()
        return html_table("Answers", head, rows, [str(release.guarantee) for release in self.values()][:1])


def _cell(value: Any) -> str:
    return show(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else show_key(value)
