"""The documentation site: built without a warning, from nothing but the repository, and held to axe's rules.

`make soak` opens every page on a phone and on a desk, light and dark; `make test` a few of them.
"""

from __future__ import annotations

import functools
import http.server
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import page_worlds

ROOT = Path(__file__).resolve().parents[2]
#: Text with tables and code in links; a mechanism with formulas and sessions. The others are left to `make soak`.
SOME = ("guarantees.html", "mechanisms/weighted.html")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole site, built once."""
    out = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs"))
        import rendering

        patch.setattr(rendering, "PAGES", tmp_path_factory.mktemp("pages") / "pages")
        assert rendering.build_site(out) > 60
    return out


def _read(site: Path) -> dict[str, str]:
    return {str(page.relative_to(site)): page.read_text(encoding="utf-8") for page in site.rglob("*.html")}


def test_every_page_of_the_repository_is_there_and_listed(site: Path) -> None:
    written = _read(site)
    for source in (ROOT / "docs").glob("*.md"):
        name = {"index": "arrays"}.get(source.stem, source.stem)
        assert f"{name}.html" in written
        assert f'href="{name}.html"' in written["index.html"], f"{name} is not in the navigation"
    assert {"changelog.html", "contributing.html", "security.html"} <= set(written)
    assert 'id="neighbours"' in written["guarantees.html"]
    assert 'href="guarantees.html#neighbours"' in written["arrays.html"]


def test_a_mechanism_has_a_page_and_links_lead_to_it(site: Path) -> None:
    from epsilons.mechanisms.base import list_mechanisms

    written = _read(site)
    for name in (*list_mechanisms(), *list_mechanisms("individual")):
        assert f"mechanisms/{name}.html" in written
        assert f'href="mechanisms/{name}.html"' in written["mechanisms.html"]


def test_nothing_comes_from_outside(site: Path) -> None:
    """Links may lead elsewhere; nothing is loaded from there."""
    for name, text in _read(site).items():
        loaded = re.findall(r'<(?:script|img|iframe|source)[^>]+src="([^"]+)"', text)
        loaded += re.findall(r'<link[^>]+rel="(?:stylesheet|preconnect|icon)"[^>]*href="([^"]+)"', text)
        loaded += re.findall(r'<link[^>]+href="([^"]+)"[^>]*rel="(?:stylesheet|preconnect|icon)"', text)
        assert [one for one in loaded if re.match(r"(https?:)?//", one)] == [], name
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//", style.read_text(encoding="utf-8")), style.name


def test_what_a_notebook_draws_is_shown(site: Path) -> None:
    drawn = [picture.name for picture in (site / "notebooks").glob("*.svg")]
    shown = "".join(text for name, text in _read(site).items() if name.startswith("notebooks/"))
    assert len(drawn) >= 2
    assert [name for name in drawn if f'src="{name}"' not in shown] == []


def test_a_mechanism_has_its_colour_in_the_pictures(site: Path) -> None:
    from epsilons.plots import pick_color

    for picture in ("picture-plan.svg", "picture-weights.svg"):
        drawn = (site / picture).read_text(encoding="utf-8")
        for name in ("minimum", "threshold", "sample", "weighted"):
            assert pick_color(name) in drawn, (picture, name)


def test_search_knows_the_pages(site: Path) -> None:
    found = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    places = {entry["location"].split("#")[0] for entry in found["docs"]}
    assert {"choosing.html", "reference/functions.html", "mechanisms/weighted.html"} <= places


def test_every_option_is_typed_and_explained(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import reference

    assert reference.unexplained() == []
    text = (site / "reference" / "functions.html").read_text(encoding="utf-8")
    assert "Which mechanism answers; auto takes the best of the plan." in text
    tables = (site / "reference" / "tables.html").read_text(encoding="utf-8")
    assert "So many rows of one person are used at most." in tables[tables.index('id="dataset.register-arguments"') :]
    assert 'id="epsilons-mean"' in (site / "reference" / "commands.html").read_text(encoding="utf-8")


# In a browser ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


#: A phone in the light, a desk in the dark.
SCREENS = {
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light"},
    "desk": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
}


def _look(address: str, pages: list[str]) -> dict[str, str]:
    """{screen and page: what is wrong there}: axe's findings, a page wider than the screen, anything from outside."""
    from axe_playwright_python.sync_playwright import Axe

    wrong: dict[str, str] = {}
    with page_worlds.browsing() as browser:
        for screen, how in SCREENS.items():
            page, outside = browser.new_page(**how), list[str]()
            page.set_default_timeout(90_000)  # a busy machine is no fault of a page
            page.on("request", lambda asked, outside=outside: outside.append(asked.url))
            for name in pages:
                page.goto(address + name)
                page.wait_for_load_state()
                found = Axe().run(page)
                wide = page.evaluate("document.documentElement.scrollWidth")
                if found.violations_count or wide > how["viewport"]["width"]:
                    wrong[f"{name} on a {screen}"] = f"{wide} wide\n{found.generate_report()}"
            strangers = [url for url in outside if not url.startswith((address, "data:", "blob:"))]
            if strangers:
                wrong[f"from outside on a {screen}"] = ", ".join(strangers)
            page.close()
    return wrong


@pytest.mark.integration
def test_axe_finds_nothing_on_two_pages(address: str) -> None:
    if reason := page_worlds.missing():
        pytest.skip(reason)
    assert _look(address, list(SOME)) == {}


@pytest.mark.integration
def test_the_widest_tables_fit_a_desk(address: str) -> None:
    if reason := page_worlds.missing():
        pytest.skip(reason)
    fits = "[...document.querySelectorAll('.md-typeset table')].map(t => [t.rows[0].cells.length, t.scrollWidth])"
    room = "document.querySelector('.md-content__inner').getBoundingClientRect().width"
    with page_worlds.browsing() as browser:
        page = browser.new_page(**SCREENS["desk"])
        page.set_default_timeout(90_000)
        for name in ("index.html", "features.html"):
            page.goto(address + name)
            tables = page.evaluate(fits)
            assert max(columns for columns, _ in tables) >= 7
            assert max(width for _, width in tables) <= page.evaluate(room), name


@pytest.mark.soak
@pytest.mark.integration
def test_axe_finds_nothing_on_any_page(site: Path, address: str) -> None:
    if reason := page_worlds.missing():
        pytest.skip(reason)
    assert _look(address, sorted(_read(site))) == {}
