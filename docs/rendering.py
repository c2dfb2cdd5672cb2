"""Lay the pages out for mkdocs in build/pages, and render them to docs/_site: `make docs` calls it after its checks.

- README.md becomes the first page, docs/index.md the one on arrays; docs/mechanisms.md is split, a page per mechanism;
- notebooks of examples/ become pages; the reference is written from signatures, docstrings and commands;
- pictures are drawn by the library (docs/pictures.py);
- a link between files of the repository becomes one between pages; to a file that is no page it becomes plain text.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "build" / "pages"

#: Pages in their order; "mechanisms/", "reference/" and "notebooks/" stand for all of a folder.
NAV: dict[str, dict[str, str]] = {
    "": {"Welcome": "index.md", "Install": "install.md"},
    "In five minutes": {
        "As a steward": "start-steward.md",
        "As an analyst": "start-analyst.md",
        "As a person": "start-person.md",
        "As a researcher": "start-researcher.md",
        "As a collector": "start-collector.md",
    },
    "Understand": {
        "Ideas, with pictures": "concepts.md",
        "Choosing epsilons": "choosing.md",
        "Guarantees": "guarantees.md",
        "Individual and group privacy": "individual.md",
        "Threat model": "threat-model.md",
        "Glossary": "glossary.md",
    },
    "Use": {
        "Arrays": "arrays.md",
        "Tables": "tables.md",
        "Conditions": "predicates.md",
        "Command line, SQL, batches": "commands.md",
        "Models": "models.md",
        "The ledger": "ledger.md",
        "The gateway": "gateway.md",
        "Its pages": "pages.md",
        "Asking people directly": "local.md",
        "Aggregators": "aggregators.md",
        "Spark": "spark.md",
        "Deployment": "deployment.md",
        "Backups, and moving": "backup.md",
        "For researchers": "researchers.md",
    },
    "Notebooks": {"": "notebooks/"},
    "Mechanisms": {"Which there are": "mechanisms.md", "": "mechanisms/"},
    "Reference": {"": "reference/"},
    "Evidence": {
        "Theory": "theory.md",
        "The papers, measured again": "papers.md",
        "What they claim": "claims.md",
        "What we corrected": "corrections.md",
        "Audits": "audits.md",
        "Reliability": "reliability.md",
        "Benchmarks": "benchmarks.md",
        "Peers, measured": "peers.md",
        "Peers, by what they can": "features.md",
        "Related work": "references.md",
    },
    "Develop": {
        "Contributing": "contributing.md",
        "Architecture": "architecture.md",
        "Decisions": "decisions.md",
        "Dependencies": "dependencies.md",
        "Versions": "versions.md",
        "Security": "security.md",
        "Changelog": "changelog.md",
    },
}

_MOVED = {"README.md": "index.md", "docs/index.md": "arrays.md"}
_FENCE = re.compile(r"^ *(```|~~~)")
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)", re.DOTALL)
_NAMELESS = ('data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"')
_ITEM = re.compile(r"^( *)([-*] |\d+\. )")


def sources() -> dict[str, str]:
    """{file of the repository: page of the site}."""
    files = [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / f"{name}.md" for name in ("README", "CHANGELOG"))]
    files += [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
    names = (file.relative_to(ROOT).as_posix() for file in files)
    return {name: _MOVED.get(name, PurePosixPath(name).name.lower()) for name in names}


def anchors(text: str) -> Iterator[tuple[int, str]]:
    """(line, anchor) of every heading, as links of the repository name them."""
    seen: dict[str, int] = {}
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for place, token in enumerate(tokens):
        if token.type == "heading_open" and token.map is not None:
            words = re.sub(r"[^\w\s-]", "", tokens[place + 1].content.lower())
            anchor = re.sub(r"\s", "-", words.strip())
            seen[anchor] = seen.get(anchor, -1) + 1
            yield token.map[0], f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor


def write_page(file: str, text: str, page: str, known: Mapping[str, str]) -> None:
    """One page: its headings have their anchors, its links lead to pages, its lists are lists to mkdocs, too."""
    lines, inside, marked = text.split("\n"), False, dict(anchors(text))
    written: list[str] = []
    for place, line in enumerate(lines):
        fence = bool(_FENCE.match(line))
        if not inside and not fence:
            if place in marked:
                line = f"{line.rstrip('# ')} {{#{marked[place]}}}"
            before = written[-1] if written else ""
            item = _ITEM.match(line)
            if item and before.strip() and not _ITEM.match(before) and not before.startswith(" "):
                written.append("")
            if item and len(item[1]) in (2, 3):
                line = " " * (4 - len(item[1])) + line
        inside ^= fence
        written.append(line)
    out = PAGES / page
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(_link(file, "\n".join(written), page, known), encoding="utf-8")


def _link(file: str, text: str, page: str, known: Mapping[str, str]) -> str:
    """Links as they are on the site; blocks of code are left alone."""
    up = "../" * page.count("/")

    def write(found: re.Match[str]) -> str:
        picture, shown, target = found.groups()
        name, mark, heading = target.partition("#")
        drawn_here = picture and (PAGES / page).with_name(name).exists()
        if not name or drawn_here or re.match(r"[a-z]+:", target):
            return found[0]
        aim = (ROOT / file).parent.joinpath(name).resolve().relative_to(ROOT).as_posix()
        if aim == "docs/mechanisms.md" and (PAGES / "mechanisms" / f"{heading}.md").exists():
            return f"{picture}[{shown}]({up}mechanisms/{heading}.md)"
        if aim in known:
            return f"{picture}[{shown}]({up}{known[aim]}{mark}{heading})"
        if aim.startswith("docs/") and aim.endswith((".png", ".svg")):
            return f"{picture}[{shown}]({up}{PurePosixPath(aim).name})"
        if aim.startswith("examples/") and aim.endswith(".ipynb"):
            return f"{picture}[{shown}]({up}notebooks/{PurePosixPath(aim).stem}.md)"
        return shown

    whole = re.split(r"(^ *```.*?^ *```)", text, flags=re.DOTALL | re.MULTILINE)
    # A second word after the language is for the checks.
    whole = [re.sub(r"^( *```\w+) \w+$", r"\1", part, count=1, flags=re.MULTILINE) for part in whole]
    linked = [part if part.lstrip().startswith("```") else _LINK.sub(write, part) for part in whole]
    return "".join(linked).replace('src="docs/', f'src="{up}')


def _split_example(body: str) -> tuple[str, str]:
    """(what a mechanism does, its session with the sentence that leads to it)."""
    text, fence, session = body.partition("```pycon")
    *paragraphs, last = text.rstrip().split("\n\n")
    leads = last.endswith(":")
    return "\n\n".join([*paragraphs, *([] if leads else [last])]), f"{last if leads else ''}\n\n{fence}{session}"


def _split_mechanisms(known: Mapping[str, str]) -> list[str]:
    """A page per mechanism, each with the people of the examples."""
    from epsilons.mechanisms.base import list_mechanisms

    file = "docs/mechanisms.md"
    head, *sections = re.split(r"^## ", (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
    names = {*list_mechanisms(), *list_mechanisms("individual")}
    own = {section.split("\n", 1)[0].strip(): section for section in sections}
    notation, setting = re.split(r"^Notation\. ", head, maxsplit=1, flags=re.MULTILINE)[1].split("\n\n", 1)
    listed = [name for name in own if name in names]
    for name in listed:
        (PAGES / "mechanisms").mkdir(parents=True, exist_ok=True)
        (PAGES / "mechanisms" / f"{name}.md").touch()
    for name in listed:
        text, example = _split_example(own[name].split("\n", 1)[1])
        whole = f"# {name}\n{text}\n\n## Notation\n\n{notation}\n\n## Example\n\n{setting}\n\n{example}"
        write_page(file, whole, f"mechanisms/{name}.md", known)
    index = "\n".join(f"- [{name}](mechanisms.md#{name})" for name in listed)
    rest = "".join(f"## {text}" for name, text in own.items() if name not in names)
    write_page(file, f"{head}\n## A page each\n\n{index}\n\n{rest}", "mechanisms.md", known)
    return listed


def _write_notebooks(known: Mapping[str, str]) -> dict[str, str]:
    """{title: page} of the notebooks, with what comes out of them."""
    import notebooks

    found, folder = {}, PAGES / "notebooks"
    folder.mkdir()
    for file in sorted((ROOT / "examples").glob("*.ipynb")):
        text, page = notebooks.write_notebook(file, folder), f"notebooks/{file.stem}.md"
        write_page(f"examples/{file.name}", text, page, known)
        found[text.partition("\n")[0].lstrip("# ")] = page
    return found


def stage() -> list[dict[str, object]]:
    """Write all pages, and say how they are listed."""
    import pictures
    import reference

    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir(parents=True)
    known = sources()
    mechanisms = _split_mechanisms(known)
    for file, page in known.items():
        if file != "docs/mechanisms.md":
            write_page(file, (ROOT / file).read_text(encoding="utf-8"), page, known)
    for picture in (*(ROOT / "docs").glob("*.png"), *(ROOT / "docs").glob("*.svg")):
        shutil.copy(picture, PAGES / picture.name)
    for name in ("site.css", "site.js"):
        shutil.copy(ROOT / "docs" / name, PAGES / name)
    pictures.draw_all(PAGES)
    folders = {
        "mechanisms/": {name: f"mechanisms/{name}.md" for name in mechanisms},
        "notebooks/": _write_notebooks(known),
        "reference/": reference.write_all(PAGES / "reference"),
    }
    return _list_pages(known, folders)


def _list_pages(known: Mapping[str, str], folders: Mapping[str, Mapping[str, str]]) -> list[dict[str, object]]:
    """The navigation; a page that `NAV` does not name stands at the end of "Use"."""
    named = {page for listed in NAV.values() for page in listed.values()}
    more = {page: page for page in known.values() if page not in named}
    nav: list[dict[str, object]] = []
    for section, listed in NAV.items():
        entries: list[object] = []
        for title, page in listed.items():
            whole = folders.get(page)
            entries += [{one: aim} for one, aim in whole.items()] if whole is not None else [{title: page}]
        if section == "Use":
            entries += list(more)
        if section and entries:
            nav.append({section: entries})
        else:
            nav += entries  # type: ignore[arg-type]
    return nav


def build_site(site: Path) -> int:
    """Render all pages into a folder, and say how many there are; a warning of mkdocs is an error."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    logging.getLogger("mkdocs").setLevel(logging.WARNING)
    nav = stage()
    config = load_config(str(ROOT / "mkdocs.yml"), nav=nav, site_dir=str(site), docs_dir=str(PAGES), strict=True)
    config.plugins.run_event("startup", command="build", dirty=False)
    build(config)
    for page in site.rglob("*.html"):
        # The theme's search is a dialogue without a name, and a corner of a table is no heading.
        text = page.read_text(encoding="utf-8").replace(*_NAMELESS)
        text = re.sub(r"<th([^>]*)></th>", r"<td\1></td>", text)
        page.write_text(text, encoding="utf-8")
    return len(list(site.rglob("*.html")))
