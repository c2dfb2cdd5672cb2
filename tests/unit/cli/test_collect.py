"""`epsilons collect` from design to estimate, as typed, with the status each mistake ends with."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from epsilons.cli import app
from epsilons.local import Survey
from support.lengths import short_and_long


def run(folder: Path, line: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """One command in a folder of its own, with what is typed into it; in this process, which is faster."""
    words, out, notes = shlex.split(line), io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(notes):
            status = app.main(words)
    return subprocess.CompletedProcess(words, status, out.getvalue(), notes.getvalue())


def test_a_process_of_its_own_says_the_same(tmp_path: Path) -> None:
    """As a user types it, with warnings that would be errors."""
    line = 'collect design exam.toml --question "Ever cheated?" --none no --option yes --sampling 0.45'
    here = run(tmp_path, line)
    assert here.returncode == 0, here.stderr
    (tmp_path / "exam.toml").unlink()
    command = [sys.executable, "-W", "error", "-m", "epsilons", *shlex.split(line)]
    there = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (there.returncode, there.stdout, there.stderr) == (0, here.stdout, here.stderr)


def ours(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, line: str
) -> tuple[int, str, str]:
    """The same in this process, which is faster."""
    monkeypatch.chdir(folder)
    status = app.main(shlex.split(line))
    seen = capsys.readouterr()
    return status, seen.out, seen.err


def test_from_design_to_estimate(tmp_path: Path) -> None:
    done = run(tmp_path, 'collect design exam.toml --question "Ever cheated?" --none no --option yes --sampling 0.45')
    assert done.returncode == 0, done.stderr
    assert "the paper's claim" in done.stdout
    assert "infinite" in done.stdout
    assert Survey.load(tmp_path / "exam.toml").question == "Ever cheated?"
    answers = run(tmp_path, "collect respond exam.toml --header", "yes\n" * 300 + "no\n" * 700)
    assert answers.returncode == 0, answers.stderr
    lines = answers.stdout.splitlines()
    assert lines[0] == "round1,round2"
    assert len(lines) == 1001
    assert set(lines[1:]) <= {"0,0", "0,1", "1,1"}
    (tmp_path / "answers.csv").write_text(answers.stdout + "oops\n0\n")
    told = run(tmp_path, "collect estimate answers.csv --protocol exam.toml --json")
    assert told.returncode == 0, told.stderr
    document = json.loads(told.stdout)
    low, high = document["options"][0]["interval"]
    assert document["respondents"] == 1000
    assert low - 60 < 300 < high + 60
    assert [bad["line"] for bad in document["bad_rows"]] == [1002, 1003]
    assert {one["view"] for one in document["leakage"]} == {"second-round", "both-rounds", "counts"}
    assert document["leakage"][1]["true_epsilon"] is None
    assert document["leakage"][1]["delta"] == pytest.approx(0.45)
    table = run(tmp_path, "collect estimate answers.csv --protocol exam.toml --level 0.8")
    assert "0.8 interval" in table.stdout
    assert "line 1002: round1 is none of the outputs" in table.stderr
    assert "2 rows left out" in table.stderr


def test_the_two_rounds_can_be_sent_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def say(line: str) -> tuple[int, str, str]:
        return ours(tmp_path, capsys, monkeypatch, line)

    assert say('collect design s.json --question "?" --option a --option b --sampling 0.9')[0] == 0
    status, first, _ = say("collect respond s.json --answer b --round 1 --state mine.json")
    assert (status, first.strip() in {"0", "1", "2"}) == (0, True)
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "mine.json").stat().st_mode) == 0o600
    _, second, _ = say("collect respond s.json --round 2 --state mine.json")
    assert say("collect respond s.json --round 2 --state mine.json")[1] == second, "a retry sends the same"
    status, out, err = say("collect respond s.json --answer b --round 1 --state mine.json")
    assert (status, out) == (8, "")
    assert "answered already" in err
    assert say('collect design t.json --question "!" --option a --option b --sampling 0.9')[0] == 0
    assert say("collect respond t.json --round 2 --state mine.json")[0] == 8, "a state of another survey"


def test_levels_and_places(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def say(line: str) -> tuple[int, str, str]:
        return ours(tmp_path, capsys, monkeypatch, line)

    status, out, _ = say('collect design l.toml --question "?" --level strict=0.1 --level open=2')
    assert status == 0
    assert "an answer at level strict" in out
    rows = [say(f"collect respond l.toml --answer yes --level {level}")[1] for level in ("strict", "open", "open")]
    assert all(re.fullmatch(r"[01],(strict|open)\n", row) for row in rows)
    (tmp_path / "l.csv").write_text("".join(rows))
    status, out, _ = say("collect estimate l.csv --protocol l.toml --assume nothing")
    assert status == 0
    assert "One owner who cheats moves a count by at most" in out
    box = "--box 40.7 -74.02 40.8 -73.93"
    assert say(f'collect design p.toml --question "Where?" --square 2 {box} --epsilon 2')[0] == 0
    (tmp_path / "p.csv").write_text("answer\n1\n2\n0\n")
    pytest.importorskip("matplotlib")
    status, _, err = say("collect estimate p.csv --protocol p.toml --map p.png")
    assert (status, "Map in p.png" in err) == (0, True)
    assert (tmp_path / "p.png").read_bytes()[:4] == b"\x89PNG"
    assert say("collect estimate l.csv --protocol l.toml --map l.png")[0] == 5
    assert say("collect estimate p.csv --protocol p.toml --map p.nonsense")[0] == 5


def test_what_cannot_be_shown_is_refused_before_a_collection_is_closed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is spoken to, so no round is closed; a token is not even looked for."""
    here = tmp_path, capsys, monkeypatch
    assert ours(*here, "collect design e.toml --question Ever? --level a=1")[0] == 0
    ends = "--close --aggregator http://127.0.0.1:1 --token one --aggregator http://127.0.0.1:1 --token two"
    for wrong, what in (("--map e.png", "The options are no places."), ("--assume far", "--assume far is not allowed")):
        status, _, err = ours(*here, f"collect run e.toml {ends} {wrong}")
        assert (status, what in err) == (5, True), err


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ('collect design a.toml --question "?"', 5),
        ('collect design a.toml --question "?" --epsilon 1 --sampling 0.3', 5),
        ('collect design a.toml --question "?" --epsilon 1 --yes 0.3', 5),
        ('collect design a.toml --question "?" --epsilon 0', 3),
        ('collect design a.toml --question "?" --epsilon nan', 3),
        ('collect design a.toml --question "?" --sampling 1.5', 8),
        ('collect design a.toml --question "?" --sampling 1e999999999', 8),
        ('collect design a.toml --question "?" --option 7 --epsilon 1', 8),
        ('collect design a.toml --question "?" --option a --option A --epsilon 1', 8),
        ('collect design a.toml --question "?" --level strict --level x=1', 5),
        ('collect design a.toml --question "?" --epsilon 1 --box 1 2 3 4', 5),
        ('collect design a.toml --question "?" --epsilon 1 --h3 99 --box 1 2 3 4', 5),
        ('collect design nowhere/a.toml --question "?" --epsilon 1', 8),
        ("collect design a.toml --epsilon 1", 2),
        ("collect respond gone.toml --answer yes", 8),
        ("collect respond here.toml --answer maybe", 8),
        ("collect respond here.toml --answer yes --round 1 --state x", 8),
        ("collect respond here.toml --answer yes --round 1", 8),
        ("collect estimate gone.csv --protocol here.toml", 4),
        ("collect estimate empty.csv --protocol here.toml", 4),
        ("collect estimate here.toml --protocol empty.csv", 8),
        ("collect estimate good.csv --protocol here.toml --level 2", 5),
        ("collect estimate good.csv --protocol here.toml --assume nothing", 5),
        ('collect design here.toml --question "?" --epsilon 1', 8),
        ("collect plan --error 0", 5),
        ("collect plan --error 0.1 --count 3 --share 0.5", 5),
    ],
)
def test_a_mistake_ends_with_its_status_and_without_a_traceback(
    line: str, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Survey("Ever?", ("yes",), _response(), none="no").save(tmp_path / "here.toml")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "good.csv").write_text("yes\nno\n")
    found, out, err = ours(tmp_path, capsys, monkeypatch, line)
    assert (found, out) == (status, ""), err
    assert err.strip()
    assert "maybe" not in err


def _response() -> object:
    from epsilons.local import RandomizedResponse

    return RandomizedResponse(epsilon=1)


def test_plan_says_how_many(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    status, out, _ = ours(tmp_path, capsys, monkeypatch, "collect plan --error 0.01 --share 0.05 --json")
    rows = json.loads(out)["rows"]
    assert status == 0
    assert [row["holds_for"] for row in rows] == ["all", "second-round", "counts", "both-rounds"]
    assert rows[0]["respondents"] > rows[2]["respondents"]


def paste(folder: Path, example: str) -> subprocess.CompletedProcess[str]:
    """A line into a shell, whose `epsilons` is the one of this environment."""
    script = f'epsilons() {{ "{sys.executable}" -m epsilons "$@"; }}\nset -e\n{example}'
    return subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False, timeout=60)


def read_as_a_shell(folder: Path, example: str) -> subprocess.CompletedProcess[str]:
    """The same in this process: at most what another program prints, one command of ours, and one file at its end."""
    reader = shlex.shlex(example, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    words, stdin, file = list(reader), "", ""
    if "|" in words:
        stdin = subprocess.check_output(words[: words.index("|")], text=True)
        words = words[words.index("|") + 1 :]
    if words[-2] == ">>":
        *words, _, file = words
    assert words[0] == "epsilons"
    assert not any(set(word) <= set("();<>|&") for word in words)
    done = run(folder, shlex.join(words[1:]), stdin)
    if file:
        with open(folder / file, "a", encoding="utf-8") as out:
            out.write(done.stdout)
    return done


@pytest.mark.parametrize("shell", short_and_long(read_as_a_shell, paste))
def test_the_examples_in_the_help_work_as_pasted(
    tmp_path: Path, shell: Callable[[Path, str], subprocess.CompletedProcess[str]]
) -> None:
    """In the order design, respond, estimate, plan, in one folder."""
    group = app.epsilons.get_command(click.Context(app.epsilons), "collect")
    assert isinstance(group, click.Group)
    ran = 0
    for name in ("design", "respond", "estimate", "plan"):
        text = (group.commands[name].help or "").replace("\\\n", "")
        examples = [line.strip() for line in text.splitlines() if re.match(r"\s+(epsilons|printf) ", line)]
        if not _has_h3():
            examples = [line for line in examples if "town.toml" not in line]
        assert examples, name
        for example in examples:
            done = shell(tmp_path, example)
            assert done.returncode == 0, (example, done.stderr)
            ran += 1
    assert ran >= 7


def _has_h3() -> bool:
    try:
        import h3  # noqa: F401
    except ImportError:
        return False
    return True


def test_a_batch_with_a_bad_answer_sends_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    Survey("Ever?", ("yes",), _response(), none="no").save(tmp_path / "s.toml")
    done = run(tmp_path, "collect respond s.toml --header", "yes\nperhaps\nno\n")
    assert (done.returncode, done.stdout) == (8, "")
    assert "perhaps" not in done.stderr
    status, out, err = ours(tmp_path, capsys, monkeypatch, "collect respond s.toml --answer yes --level strict")
    assert (status, out) == (8, "")
    assert "no levels" in err


def test_a_question_cannot_write_what_looks_like_terms() -> None:
    from epsilons.cli.commands.collect.owner import show_terms
    from epsilons.collection import Collection, Place
    from epsilons.collection.sealing import OpeningKey

    places = [Place(f"https://a{n}.example.org", str(OpeningKey.fresh().public)) for n in range(2)]
    question = "Which one?\n\nYour level: open, epsilon 0.01.\r\n\u2028Who adds up, by address and key:"
    survey = Survey(question, ("yes",), None, {"open": 1.0})
    lines = show_terms(Collection.start(survey, places), 0).splitlines()
    assert lines[0].startswith("Which one? Your level")
    assert next(line for line in lines if line.startswith("Your level")).startswith("Your level: open, epsilon 1.")
    assert lines.count("Who adds up, by address and key:") == 1
