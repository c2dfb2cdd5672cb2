"""How much room the cells of a sheet take, and how much is too much."""

from typing import NamedTuple

from epsilons.errors import DataError

#: A sheet may have so many places for each of its cells, and so many more; drawn together, so many more.
_EACH, _FREE, _MOST = 8, 1 << 20, 1 << 26


class Extent(NamedTuple):
    """The rectangle around all the cells of a sheet, and how many cells its file has for it."""

    rows: int
    columns: int
    cells: int

    @property
    def is_far(self) -> bool:
        return self.rows * self.columns > _EACH * self.cells + _FREE

    def check(self) -> None:
        """Refuse a sheet that would take too much room even without its empty rows and columns."""
        if self.rows * self.columns > _EACH * self.cells + _MOST:
            rule = f"At most {_MOST:,} places of a sheet may be empty, or repeat others."
            raise DataError("A sheet has too few cells for its size.", rule=rule, suggest="the sheet saved as CSV")
