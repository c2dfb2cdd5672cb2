"""Check the documentation, then render it to docs/_site: `make docs`.

- every block of code marked `python` or `pycon` in README.md and docs/*.md runs, page by page in one namespace; what a
  `pycon` block shows must be what comes out;
- every command that a page shows is there, and takes the options that it is given;
- every public name of the package is mentioned;
- every link to a file of the repository leads somewhere;
- every paper that a page, a docstring or a comment cites stands in docs/references.md;
- the table of mechanisms says what the mechanisms themselves say.

    python docs/build.py            check, then render
    python docs/build.py --check    check only
    python docs/build.py --write    write the table of mechanisms again, check, render
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import io
import os
import re
import shlex
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import click
from markdown_it import MarkdownIt
from markdown_it.token import Token

import epsilons as eps
from epsilons.cli.app import epsilons
from epsilons.mechanisms import base
from epsilons.mechanisms.base import list_mechanisms

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "docs" / "_site"

#: The parts of a page that `--write` fills in.
TABLE_START = "<!-- table of mechanisms: written by docs/build.py -->"
TABLE_END = "<!-- end of table -->"

#: Statistics side by side in the table, with arguments that every one of them could be asked with. Some mechanisms
#: serve a statistic only where missing values stand at the centre of its bounds.
_BOUNDED = {"bounds": (0, 1), "missing": "center"}
COLUMNS: dict[str, dict[str, dict[str, Any]]] = {
    "count": {"count": {}},
    "sum, mean": {"sum": _BOUNDED, "mean": _BOUNDED},
    "variance": {"variance": _BOUNDED},
    "median, quantile": {"median": _BOUNDED, "quantile": {"q": 0.9, **_BOUNDED}},
    "min, max, kth_largest": {"min": _BOUNDED, "max": _BOUNDED, "kth_largest": {"k": 2, **_BOUNDED}},
    "histogram": {"histogram": {"edges": (0, 1, 2)}},
    "mode": {"mode": {"among": (0, 1)}},
}

#: Who described a mechanism first, by the short names of docs/references.md.
SOURCES = {
    "minimum": ("Jorgensen et al. 2015",),
    "threshold": ("Jorgensen et al. 2015",),
    "sample": ("Jorgensen et al. 2015",),
    "stretching": ("Alaggan et al. 2015",),
    "exponential": ("Jorgensen et al. 2015",),
    "mixed": ("Ferrando et al. 2021",),
    "smooth-sensitivity": ("Nissim et al. 2007",),
    "weighted": ("Fallah et al. 2022", "Cummings et al. 2022", "Chaudhuri and Courtade 2023"),
    "robust": ("Chaudhuri and Courtade 2024",),
    "local-sensitivity": ("Soria-Comas et al. 2017",),
}

_markdown = MarkdownIt("commonmark").enable("table")


def pages() -> list[Path]:
    """The front page and everything in docs."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


# Checks --------------------------------------------------------------------------------------------------------------


def code_blocks(page: Path) -> Iterator[tuple[str, int, str]]:
    """(language, line, code) of every fenced block."""
    for token in _markdown.parse(page.read_text(encoding="utf-8")):
        if token.type == "fence" and token.map is not None:
            yield token.info.strip(), token.map[0] + 2, token.content


def run_blocks(page: Path) -> list[str]:
    """What goes wrong when a page is read aloud to Python, from top to bottom, by somebody who has read no other."""
    state = tempfile.TemporaryDirectory()
    with state as folder, mock.patch.dict(os.environ, {"XDG_STATE_HOME": folder}), mock.patch.dict(base._REGISTRY):
        faults = _run_blocks(page)
    base.REGISTERED.append(base.Mechanism)  # what plans remember of mechanisms that a page registered is forgotten
    return faults


def _run_blocks(page: Path) -> list[str]:
    faults, namespace = [], {"__name__": "__main__"}
    for language, line, code in code_blocks(page):
        where = f"{page.relative_to(ROOT)}:{line}"
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said):
                if language == "python":
                    exec(compile(code, where, "exec"), namespace)
                elif language == "pycon":
                    _run_session(code, namespace, where)
        except _SessionError as mismatch:
            faults.append(str(mismatch))
        except Exception:
            faults.append(f"{where}: {traceback.format_exc(limit=-1)}")
    return faults


class _SessionError(Exception):
    """A session shows something else than what comes out."""


def _run_session(code: str, namespace: dict[str, Any], where: str) -> None:
    test = doctest.DocTestParser().get_doctest(code, {}, where, where, 0)
    test.globs = namespace
    told = io.StringIO()
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=told.write, clear_globs=False)
    if runner.failures:
        raise _SessionError(told.getvalue())


def wrong_commands(page: Path) -> list[str]:
    """Lines and words `epsilons ...` of a page that no command, or no option, stands for."""
    text = page.read_text(encoding="utf-8")
    told = [line for language, _, code in code_blocks(page) if language in ("sh", "text") for line in _lines(code)]
    told += [" ".join(words.split()) for words in re.findall(r"`(epsilons [^`]+)`", text)]
    return [f"{page.relative_to(ROOT)}: `{line}`: {why}" for line in told if (why := _wrong_command(line))]


def _lines(code: str) -> Iterator[str]:
    """Commands of a block; a line that ends with a backslash goes on."""
    for line in code.replace("\\\n", " ").splitlines():
        found = re.search(r"^\s*(?:\$ |.* \| )?(epsilons .*)", line)
        if found:
            yield re.split(r"\s(?:>>?|\||&&?)\s", found[1])[0]


def _wrong_command(line: str) -> str:
    """What is wrong with a command, or nothing."""
    command: click.Command = epsilons
    words = shlex.split(line, comments=True)[1:]
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(click.Context(command), words.pop(0))
        if found is None:
            return "there is no such command"
        command = found
    known = {option for one in command.params for option in (*one.opts, *one.secondary_opts)} | {"--help", "--version"}
    given = [word.partition("=")[0] for word in words if word.startswith("--")]
    return "".join(f"there is no {option} " for option in given if option not in known).rstrip()


def unmentioned_names() -> list[str]:
    """Public names that no page mentions as `eps.name` or in backticks."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages())
    return [name for name in eps.__all__ if not re.search(rf"\beps\.{name}\b|`{name}[`(]", text)]


def broken_links(page: Path) -> list[str]:
    """Links to files of the repository, or to headings of pages, that lead nowhere."""
    faults = []
    for target in _links(page):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, heading = target.partition("#")
        aim = (page.parent / file).resolve() if file else page
        if not aim.exists():
            faults.append(f"{page.relative_to(ROOT)}: {target} is not there")
        elif heading and heading not in headings(aim):
            faults.append(f"{page.relative_to(ROOT)}: {target} has no such heading")
    return faults


def _links(page: Path) -> Iterator[str]:
    for token in _markdown.parse(page.read_text(encoding="utf-8")):
        for child in token.children or ():
            if child.type == "link_open":
                yield str(child.attrGet("href"))


def headings(page: Path) -> list[str]:
    """The anchors of a page."""
    return [anchor for anchor, _ in _headings(_markdown.parse(page.read_text(encoding="utf-8")))]


def _headings(tokens: Sequence[Token]) -> Iterator[tuple[str, Token]]:
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            words = re.sub(r"[^\w\s-]", "", tokens[place + 1].content.lower())
            yield re.sub(r"\s", "-", words.strip()), token


def mechanism_table() -> str:
    """Which mechanism serves which statistic, by asking for a plan of each."""
    serving = {}
    for column, statistics in COLUMNS.items():
        found = [frozenset(_serving(name, arguments)) for name, arguments in statistics.items()]
        if len(set(found)) > 1:
            raise ValueError(f"The statistics of the column {column!r} differ.")
        serving[column] = found[0]
    missing = sorted(set(list_mechanisms()) - set(SOURCES))
    if missing:
        raise ValueError(f"Say in SOURCES where {', '.join(missing)} come from.")
    lines = [
        "| mechanism | from | " + " | ".join(f"`{'`, `'.join(column.split(', '))}`" for column in COLUMNS) + " |",
        "|---|---|" + ":-:|" * len(COLUMNS),
    ]
    for name in (name for name in SOURCES if name in list_mechanisms()):
        cells = ["yes" if name in serving[column] else "" for column in COLUMNS]
        lines.append(f"| `{name}` | {', '.join(SOURCES[name])} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def references() -> list[str]:
    """The short names that docs/references.md explains."""
    text = (ROOT / "docs" / "references.md").read_text(encoding="utf-8")
    return re.findall(r"^- \*\*(.+?)\.\*\* ", text, flags=re.MULTILINE)


#: Names and a year, as a text cites them: "Jorgensen et al. 2015", "Clopper and Pearson 1934", "Joy, Gerla 2017".
_SURNAME = r"[A-Z][\w-]+"
_CITED = re.compile(rf"({_SURNAME})(?:(?:,| and|, and)\s+{_SURNAME})*(?:\s+et\s+al\.)?,?\s+\(?((?:19|20)\d\d)\b")
#: Dates look like that, too.
_DATED = re.compile(r"(January|February|March|April|May|June|July|August|September|October|November|December|Of) ")


def cited(text: str) -> dict[tuple[str, str], str]:
    """{(first author, year): the citation as it stands there}."""
    plain = re.sub(r"\s*\n[ #:]*", " ", text)
    return {(m[1], m[2]): m[0] for m in _CITED.finditer(plain) if not _DATED.match(m[0])}


def unexplained(text: str) -> list[str]:
    """Citations that docs/references.md does not explain."""
    known = {(name.split()[0], name[-4:]) for name in references()}
    return [citation for paper, citation in cited(text).items() if paper not in known]


def _serving(statistic: str, arguments: dict[str, Any]) -> list[str]:
    return [row.mechanism for row in eps.plan(statistic, [0.1, 1.0], **arguments).rows]


def tables(page: Path) -> list[str]:
    """The tables of mechanisms that stand on a page."""
    pattern = re.escape(TABLE_START) + r"\n\n(.*?)\n\n" + re.escape(TABLE_END)
    return re.findall(pattern, page.read_text(encoding="utf-8"), flags=re.DOTALL)


def write_tables() -> None:
    """Write the table anew wherever it stands."""
    table = f"{TABLE_START}\n\n{mechanism_table()}\n\n{TABLE_END}"
    for page in pages():
        text = page.read_text(encoding="utf-8")
        pattern = re.escape(TABLE_START) + r".*?" + re.escape(TABLE_END)
        renewed = re.sub(pattern, lambda _: table, text, flags=re.DOTALL)
        if renewed != text:
            page.write_text(renewed, encoding="utf-8")


def check() -> list[str]:
    """Everything that is wrong with the documentation."""
    faults = [f"`{name}` is a public name that no page mentions" for name in unmentioned_names()]
    # Mechanisms for individual privacy are not in the table, so that nobody takes them for the others.
    told = headings(ROOT / "docs" / "mechanisms.md")
    faults += [
        f"docs/mechanisms.md: no section on {name}" for name in list_mechanisms("individual") if name not in told
    ]
    for file in (*pages(), *sorted((ROOT / "src").rglob("*.py"))):
        cited = unexplained(file.read_text(encoding="utf-8"))
        faults += [f"{file.relative_to(ROOT)}: docs/references.md does not explain {name}" for name in cited]
    table = mechanism_table()
    for page in pages():
        faults += run_blocks(page) + broken_links(page) + wrong_commands(page)
        if any(found != table for found in tables(page)):
            faults.append(f"{page.relative_to(ROOT)}: the table of mechanisms is out of date; docs/build.py --write")
    return faults


# Rendering -----------------------------------------------------------------------------------------------------------


def render(site: Path = SITE) -> int:
    """Write the site, and say how many pages it has."""
    from rendering import build_site  # needs mkdocs, which checks do without

    return build_site(site)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check and render; 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description="Check the documentation and render it to docs/_site.")
    parser.add_argument("--check", action="store_true", help="check only")
    parser.add_argument("--write", action="store_true", help="write the table of mechanisms anew first")
    options = parser.parse_args(arguments)
    if options.write:
        write_tables()
    faults = check()
    if faults:
        print("\n".join(faults), file=sys.stderr)
        return 1
    if not options.check:
        print(f"{render()} pages in {SITE.relative_to(ROOT)}; start with index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
