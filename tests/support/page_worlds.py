"""A gateway whose people stand at named levels, one of them with five people; and a real browser."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import epsilons as eps
from epsilons.dataset.declared import arguments_of

LEVELS = {"strict": 0.1, "standard": 0.5, "open": 1.0, "rare": 0.7}
SIZES = {"strict": 200, "standard": 150, "open": 60, "rare": 5}


def declare_levels(folder: Path, ledger: str = "sqlite:///pay.ledger", store: str = "sqlite:///gateway.store") -> Path:
    """The gateway's file; person 0 to 199 are strict, and so on."""
    made = np.random.default_rng(23)
    count = sum(SIZES.values())
    table = {
        "id": np.arange(count),
        "wage": made.normal(50, 10, count).round(2).clip(0, 100),
        "age": made.integers(18, 80, count),
        "region": made.choice(["north", "south"], count),
        "privacy": np.repeat(list(SIZES), list(SIZES.values())),
    }
    pyarrow.parquet.write_table(pa.table(table), folder / "pay.parquet")
    named = ", ".join(f"{name} = {epsilon}" for name, epsilon in LEVELS.items())
    (folder / "pay.toml").write_text(
        f'name = "pay"\nsource = "pay.parquet"\nperson = "id"\nledger = "{ledger}"\nthreads = 1\n'
        'complete = ["wage"]\n[bounds]\nwage = [0, 100]\nage = [15, 90]\n[keys]\nregion = ["north", "south"]\n'
        f'[preferences]\ncolumn = "privacy"\nlevels = {{ {named} }}\n'
    )
    eps.Dataset.register(**arguments_of(folder / "pay.toml"), confirm=True).close()
    (folder / "gateway.toml").write_text(f'store = "{store}"\ndatasets = ["pay.toml"]\n')
    return folder / "gateway.toml"


#: Text that a page must not run, a shell not expand and a query not read otherwise.
HOSTILE = "<img src=x onerror=alert(1)>\"'; $(date) `date` --"
#: What each dataset of `declare_accounts` declares beside the rest.
ACCOUNTS = {
    "rho": 'measure = "zcdp"\ndelta = 1e-6\n',
    "yearly": 'public = ["region"]\nrenews = { standard = "year", open = "month" }\n',
    "odd & é/%41": "",
    "spent": 'measure = "zcdp"\ndelta = 1e-6\n',  # for tests that use up what people have
}


def declare_accounts(folder: Path) -> Path:
    """The gateway's file: concentrated accounts; grants by period and a public column; names that nobody means."""
    made, count = np.random.default_rng(29), 300
    for place, (name, more) in enumerate(ACCOUNTS.items()):
        named = ["strict", "standard", HOSTILE if place == 2 else "open"]
        table = {
            "id": [f"p{number}" for number in range(count)],
            "wage": made.normal(50, 10, count).round(2).clip(0, 100),
            HOSTILE: made.normal(50, 10, count).round(2).clip(0, 100),
            "select": made.choice([HOSTILE, "south"], count),
            "region": made.choice(["north", "south"], count),
            "day": made.choice([date(2026, 1, 1), date(2026, 1, 2)], count),
            "privacy": [named[number % 3] for number in range(count)],
        }
        pyarrow.parquet.write_table(pa.table(table), folder / f"{place}.parquet")
        levels = ", ".join(
            f"{json.dumps(one)} = {epsilon}" for one, epsilon in zip(named, (0.1, 0.5, 1.0), strict=True)
        )
        (folder / f"{place}.toml").write_text(
            f'name = {json.dumps(name, ensure_ascii=False)}\nsource = "{place}.parquet"\nperson = "id"\n'
            f'ledger = "sqlite:///{place}.ledger"\nthreads = 1\ncomplete = ["wage"]\n{more}[bounds]\nwage = [0, 100]\n'
            f"{json.dumps(HOSTILE)} = [0, 100]\n"
            f'[keys]\nregion = ["north", "south"]\nselect = [{json.dumps(HOSTILE)}, "south"]\n'
            "day = [2026-01-01, 2026-01-02]\n"
            f'[preferences]\ncolumn = "privacy"\nlevels = {{ {levels} }}\n'
        )
        eps.Dataset.register(**arguments_of(folder / f"{place}.toml"), confirm=True).close()
    files = json.dumps([f"{place}.toml" for place in range(len(ACCOUNTS))])
    (folder / "gateway.toml").write_text(f'store = "sqlite:///gateway.store"\ndatasets = {files}\n')
    return folder / "gateway.toml"


def missing() -> str | None:
    """What is missing for pages to be tested in a browser, loudly."""
    if shutil.which("chromium") is None:
        return "CHROMIUM IS MISSING, PAGES ARE NOT TESTED IN A BROWSER: apt-get install chromium"
    found = find_spec("playwright") and find_spec("axe_playwright_python")
    return None if found else "PLAYWRIGHT IS MISSING, PAGES ARE NOT TESTED: pip install -e '.[dev]'"


@contextmanager
def browsing() -> Iterator[Any]:
    """Debian's Chromium, as Playwright drives it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        # Tests may run as root, where Chromium has no sandbox of its own; it opens our own pages alone.
        options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=options)
        yield browser
        browser.close()
