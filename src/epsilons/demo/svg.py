"""A matplotlib figure as part of a page: inline SVG that follows the page's colours and has an alternative text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

#: Drawn in this colour, text and lines take the page's own, dark or light.
INK = "#010203"

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "path",
    "svg.hashsalt": "epsilons",
    "font.family": "sans-serif",
    "font.size": 12.0,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK,
    "grid.alpha": 0.15,
    "legend.frameon": False,
}


@contextmanager
def page_style() -> Iterator[None]:
    """Draw inside this, so that every chart looks alike and nobody else's settings change."""
    with matplotlib.rc_context(_STYLE):
        yield


def new_axes(width: float, height: float) -> Axes:
    """Empty axes on a transparent figure of their own."""
    return Figure(figsize=(width, height), layout="constrained").add_subplot()


def to_svg(axes: Axes, name: str, words: str) -> str:
    """The figure as an <svg> element. `name` keeps its ids apart from other charts', `words` are for who cannot see."""
    text = StringIO()
    figure = axes.figure
    assert isinstance(figure, Figure)
    figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    # The metadata and namespaces name addresses that a page does not need.
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", svg)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'href="#', f'href="#{name}-', svg)
    svg = svg.replace("url(#", f"url(#{name}-").replace(INK, "currentColor")
    # Only the viewBox stays, so that the page decides on the size.
    head, body = svg.split(">", 1)
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    label = html.escape(words, quote=True)
    return f'{head} role="img" aria-label="{label}"><title>{html.escape(words)}</title>{body}'
