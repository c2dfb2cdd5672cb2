"""A survey of places as a picture in a file."""

from __future__ import annotations

from typing import Any

from epsilons.cli.terminal import notes
from epsilons.errors import PlanError


def draw_map(survey: Any, estimate: Any, picture: str) -> None:
    """Draw how many owners are in each cell."""
    if not survey.places:
        raise PlanError("The options are no places.", rule="A map needs a survey of places.", suggest="leave out --map")
    from epsilons.local.places import Region, grid_from

    axes = Region.from_labels(grid_from(survey.places), survey.options).heat_map(estimate, title=survey.question)
    figure: Any = axes.figure
    try:
        figure.savefig(picture, dpi=150)
    except (OSError, ValueError):
        raise PlanError(
            "The map cannot be written.", rule="Its name ends in .png, .svg or .pdf.", suggest="map.png"
        ) from None
    notes().print(f"Map in {picture}.", markup=False)
