"""What the package answers, charges and refuses is what was recorded; how it does so may change.

The short form looks at about a third of the cases, the long one (soak) and `make recorded` at all of them.
A difference that is meant is recorded with the name of its finding: `make recorded ARGS='--renew FINDING PATTERN'`.
"""

import re
from pathlib import Path

import pytest

from recorded import record as recorded
from recorded.outcomes import Outcome

LINES = recorded.lines()


def _check(front: str, chosen: list[str] | None) -> None:
    found = recorded.differences(LINES, recorded.outcomes(front, chosen))
    listed = "\n".join(f"{name} {words}" for name, words in found.items())
    assert not found, f"{len(found)} cases of {front} are not as recorded:\n{listed}"


@pytest.mark.parametrize("front", recorded.fronts())
def test_chosen_cases_are_as_they_were_recorded(front: str) -> None:
    _check(front, recorded.choose(front))


@pytest.mark.soak
@pytest.mark.parametrize("front", recorded.fronts())
def test_everything_is_as_it_was_recorded(front: str) -> None:
    _check(front, None)


def test_the_chosen_cases_have_every_word_and_whole_stories() -> None:
    for front in recorded.fronts():
        every = [name for name in LINES if name.startswith(f"{front}/") and name not in recorded.LEANING]
        chosen = recorded.choose(front)
        assert set(chosen) <= set(every)
        all_words, words = ({word for name in names for word in re.split("[/ ]+", name)} for names in (every, chosen))
        assert words == all_words
        assert front not in ("stories", "commands") or chosen == every


def test_there_are_many_lines_and_each_belongs_to_a_case() -> None:
    assert len(LINES) >= 2_000
    assert list(LINES) == list(recorded.cases())
    assert len(recorded.FILE.read_text(encoding="utf-8").splitlines()) == len(LINES)


def test_lines_hold_what_they_should() -> None:
    assert {frozenset(line) - {"finding"} for line in LINES.values()} == {frozenset({"case", "got"})}
    assert all(line["got"] for line in LINES.values())
    # On tables that cases share nobody runs out: no case hangs on those before it.
    spent = {name.partition("/")[0] for name, line in LINES.items() if line["got"].get("code") == "budget"}
    assert spent == {"stories"}


def _planted(name: str, change: Outcome) -> str:
    """What is said of one case when its outcome is changed."""
    now = {one: line["got"] for one, line in LINES.items()}
    now[name] = {**now[name], **change}
    found = recorded.differences(LINES, now)
    assert list(found) == [name]
    return found[name]


def test_a_planted_difference_is_reported() -> None:
    name = "tables/plain/sum complete mechanism=minimum"
    got = LINES[name]["got"]
    assert recorded.differences(LINES, {one: line["got"] for one, line in LINES.items()}) == {}
    assert "value: was " in _planted(name, {"value": got["value"] + "1"})
    charged = {level: spent for level, spent in got["charged"].items() if level != "750"}
    assert charged != got["charged"]
    assert "charged: was " in _planted(name, {"charged": charged})
    assert "error: was " in _planted(name, {"error": got["error"] * (1 + 1e-9)})
    assert "keys: was " in _planted(name, {"keys": []})
    assert "new: was '(nothing)'" in _planted(name, {"new": 1})


def test_a_missing_part_and_a_missing_line_are_reported() -> None:
    name = next(iter(LINES))
    got = {part: value for part, value in LINES[name]["got"].items() if part != "charges"}
    assert "charges: was " in recorded.differences(LINES, {name: got})[name]
    assert recorded.differences({}, {name: got}) == {name: "is not recorded"}


def test_the_code_that_answers_otherwise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more than was drawn, in the public function itself."""
    import epsilons as eps

    honest = eps.individually

    def off_by_one(*arguments: object, **options: object) -> eps.Release:
        from dataclasses import replace

        release = honest(*arguments, **options)  # type: ignore[arg-type]
        return replace(release, value=release.value + 1)

    monkeypatch.setattr(eps, "individually", off_by_one)
    found = recorded.differences(LINES, recorded.outcomes("individual", recorded.choose("individual")))
    assert found
    assert all(name.startswith("individual/function/") for name in found)


def test_lines_are_renewed_for_a_finding_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name, other = "preferences/by id", "preferences/names"
    monkeypatch.setattr(recorded, "FILE", tmp_path / "recorded.jsonl")
    monkeypatch.setattr(recorded, "fronts", lambda: ["preferences"])
    old = {one: {"case": one, "got": {"edited": 1}} if one in (name, other) else line for one, line in LINES.items()}
    recorded.write(old.values())
    for wrong in (["--renew"], ["--renew", " "]):
        with pytest.raises(SystemExit):
            recorded.main(wrong)
    assert recorded.lines() == old
    assert recorded.main(["--renew", "F-7", "by id$"]) == 0
    new = recorded.lines()
    assert new[name] == {**LINES[name], "finding": "F-7"}
    assert new[other] == old[other]
    assert list(new) == list(LINES)
