"""What a page offers to copy runs as it is pasted, and asks what was asked: the stored answer, for nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

import epsilons as eps
from support.gateways import Servers, key_for
from support.page_worlds import HOSTILE, declare_accounts

pytestmark = pytest.mark.integration
#: {field of the form: what it says}, each for a dataset by its number.
QUESTIONS = (
    (0, {"statistic": "count", "share": "0.01"}),
    (0, {"statistic": "quantile", "column": "wage", "q": "0.25", "low": "10", "by": "day", "share": "0.02"}),
    (1, {"statistic": "mean", "column": "wage", "by": "region", "and_by": "select", "mechanism": "minimum"}),
    (2, {"statistic": "sum", "column": HOSTILE, "where": "\"select\" = 'a\"\"\"b\\\\' OR region = 'it''s'"}),
    (2, {"statistic": "variance", "column": HOSTILE, "by": "select", "keys": "south", "high": "90"}),
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Path]]:
    """(address, key, folder)."""
    file = declare_accounts(tmp_path_factory.mktemp("copied"))
    servers = Servers()
    yield servers.start(file)[0], key_for(file, "office"), file.parent
    servers.close()


@pytest.mark.parametrize(("number", "question"), QUESTIONS)
def test_code_runs_as_it_is_pasted(world: tuple[str, str, Path], number: int, question: dict[str, str]) -> None:
    url, key, folder = world
    with eps.Dataset.from_toml(folder / f"{number}.toml") as people:
        place = f"{url}/data/{quote(people._facts.name, safe='')}/ask?{urlencode(question)}"
        sent = urllib.request.Request(place, headers={"Authorization": f"Bearer {key}"})
        with urllib.request.urlopen(sent) as reply:
            page = reply.read().decode()
        code = {name: unescape(text) for name, text in re.findall(r'id="code-(\w+)">(.*?)</code>', page, re.DOTALL)}
        assert [*code] == ["Python", "curl", "SQL"], page
        said = {"Python": run([sys.executable, "-c", code["Python"]], key)}
        charged = people.ledger.count("reservations")
        if shutil.which("curl") is not None:
            told = json.loads(run(["sh", "-c", code["curl"]], key))
            assert told["stored"] is True
            assert f"release {told['release']['number']} of" in said["Python"]
        said["SQL"] = run([sys.executable, "-c", code["SQL"]], key)
        assert people.ledger.count("reservations") == charged, "the same question, in any language"


def run(command: list[str], key: str) -> str:
    done = subprocess.run(
        command, env={**os.environ, "EPSILONS_KEY": key}, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, f"{command[-1]}\n{done.stderr}"
    return done.stdout
