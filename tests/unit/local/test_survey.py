"""Protocol files and spreadsheets of answers: what goes in comes out, and nothing a stranger sends is fatal."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsilons.errors import DataError, EpsilonsError, ProtocolError
from epsilons.local import RandomizedResponse, SamplingDeniability, SamplingPrivacy, Survey
from epsilons.local.answers import answers_from, columns_of, read_answers
from epsilons.testing import seeded

TWO = Survey("How large?", ("0–4", "5–9 mm", 'say "big"'), SamplingPrivacy(3, 0.45), none="none of these")
ONE = Survey("Ever?", ("yes",), RandomizedResponse(epsilon=1), none="no")
LEVELS = Survey("Where?", ("left", "right"), None, {"strict": 0.1, "very open": 2.0})
SILENT = Survey("Toy?", ("yes",), SamplingDeniability(0.5, 0.8, 0.2), none="no")
GRID = {"grid": "square", "center": [48.86, 2.29], "miles": 0.15}
MAP = Survey("Which cell?", ("cell 7", "cell 8"), SamplingPrivacy(2, 0.45), places=GRID)
SURVEYS = [TWO, ONE, LEVELS, SILENT, MAP]


@pytest.mark.parametrize("survey", SURVEYS, ids=lambda s: s.question)
@pytest.mark.parametrize("name", ["s.toml", "s.json"])
def test_a_file_says_exactly_what_was_written(survey: Survey, name: str, tmp_path: Path) -> None:
    survey.save(tmp_path / name)
    again = Survey.load(tmp_path / name)
    assert again == survey
    assert again.id == survey.id
    assert again.protocol == survey.protocol


def test_both_notations_agree_and_are_what_they_say() -> None:
    for survey in SURVEYS:
        assert tomllib.loads(survey.to_toml()) == json.loads(survey.to_json())


@pytest.mark.parametrize("number", [float("nan"), float("inf"), object()])
def test_places_are_plain_values(number: Any) -> None:
    with pytest.raises(ProtocolError, match="places are not usable"):
        Survey("Q", ("cell 7",), SamplingPrivacy(1, 0.45), places={"grid": "square", "miles": number})


def test_an_id_changes_with_every_probability() -> None:
    ids = {Survey("Q", ("yes",), SamplingPrivacy(1, rate)).id for rate in ("0.45", "0.450000001", "0.44")}
    assert len(ids) == 3


@given(st.text(max_size=30), st.lists(st.text(max_size=12), min_size=1, max_size=5), st.text(max_size=12))
def test_any_label_is_kept_or_refused(question: str, labels: list[str], none: str) -> None:
    try:
        survey = Survey(question, tuple(labels), SamplingPrivacy(len(labels), 0.3), none=none)
        text = survey.to_toml()
        text.encode()
    except ProtocolError:
        return
    except UnicodeEncodeError:
        return
    assert Survey.from_dict(tomllib.loads(text)) == survey
    assert [survey.truth(label) for label in (none, *labels)] == list(range(len(labels) + 1))


@pytest.mark.parametrize(
    "text",
    [
        "", "format = 2", "format = 1", "not toml at all [", "\x00", "format = 1\noptions = 3",
        'format = 1\noptions = ["a"]', 'format = 1\noptions = ["a"]\nprotocol = "x"',
        'format = 1\noptions = ["a"]\n[protocol]\nmechanism = "x"',
        'format = 1\noptions = ["a"]\n[protocol]\nmechanism = "sampling-privacy"\nsampling = 2',
        'format = 1\noptions = ["a"]\n[protocol]\nmechanism = "sampling-privacy"\nsampling = nan',
        'format = 1\noptions = ["a"]\n[protocol]\nmechanism = "sampling-privacy"\nsampling = "1e99999999"',
        'format = 1\noptions = ["a"]\n[protocol]\nmechanism = "sampling-privacy"\nsampling = []',
        'format = 1\noptions = ["a", "A"]\n[protocol]\nmechanism = "sampling-privacy"\nsampling = 0.4',
        'format = 1\noptions = ["7"]\n[protocol]\nmechanism = "sampling-privacy"\nsampling = 0.4',
        'format = 1\nextra = 1\noptions = ["a"]\n[protocol]\nmechanism = "sampling-privacy"\nsampling = 0.4',
        'format = 1\noptions = ["a"]\n[protocol]\nmechanism = "personal-response"\n[protocol.levels]\nx = 0',
        'format = 1\noptions = ["a"]\n[protocol]\nmechanism = "personal-response"\n[protocol.levels]\nx = inf',
        'format = 1\noptions = ["a"]\n[protocol]\nmechanism = "personal-response"\n[protocol.levels]\nx = "much"',
        'format = 1\noptions = ["a"]\n[protocol]\nmechanism = "personal-response"',
        'format = 1\noptions = ["a"]\n[protocol]\nmechanism = "randomized-response"\nepsilon = -1',
    ],
)  # fmt: skip
def test_a_file_that_makes_no_sense_is_refused_in_our_words(text: str, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(text)
    with pytest.raises(EpsilonsError):
        Survey.load(file)


def test_missing_deep_and_binary_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00\x01")
    for name in ("gone.toml", "deep.json", "binary.toml", "."):
        with pytest.raises(ProtocolError):
            Survey.load(tmp_path / name)


def test_numbers_in_a_file_are_the_decimals_that_they_are(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text('format=1\noptions=["yes"]\n[protocol]\nmechanism="sampling-privacy"\nsampling=0.1\n')
    assert Survey.load(file).protocol == SamplingPrivacy(1, "1/10")


# Answers --------------------------------------------------------------------------------------------------------------


def test_answers_by_name_by_place_by_label_and_by_number() -> None:
    named = ["name;round2;round1;owner\n", "x;1;0;a\n", "y;5–9 mm;none of these;b\n"]
    plain = ["0,1\n", "0,2\n"]
    for lines in (named, plain):
        found = answers_from(lines, TWO)
        assert [r.tolist() for r in found.rounds] == [[0, 0], [1, 2]]
        assert found.bad == ()


def test_bad_rows_are_named_by_line_and_do_not_stop_the_rest() -> None:
    lines = [
        "owner,round1,round2\n", "a,0,1\n", "b,0\n", "\n", "c,0,9\n", "d,,1\n", 'e,"0,1\n', "a,1,1\n", ",1,1\n",
        "f,0,-1\n", "g,0,1.0\n", "h,0,²\n", "i,none of these,2,more\n", "j,0,\x00\n", "k,0,1",
    ]  # fmt: skip
    found = answers_from(lines, TWO)
    assert [line for line, _ in found.bad] == [3, 5, 6, 7, 8, 9, 10, 11, 12, 14]
    assert len(found) == 3
    reasons = dict(found.bad)
    assert reasons[3] == "round2 is empty"
    assert reasons[5] == "round2 is none of the outputs"
    assert reasons[7] == "the line cannot be read as cells"
    assert reasons[8] == "this owner has answered before"
    assert not any("9" in reason or "²" in reason for reason in reasons.values()), "what a row says is not repeated"


def test_levels_travel_with_the_answers() -> None:
    found = answers_from(["answer,level", "1,strict", "2,very open", "1,lax", "0,"], LEVELS)
    assert found.levels == ("strict", "very open")
    assert [line for line, _ in found.bad] == [4, 5]
    assert found.estimate(assume="nothing").respondents == 2


def test_silence_is_an_output_too() -> None:
    assert answers_from(["answer", "2", "1", "3"], SILENT).rounds[0].tolist() == [2, 1]


def test_files_of_spreadsheets_are_read(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(b"\xef\xbb\xbfanswer\r\nyes\r\nNO\r\n1\r\n\xff\xfe\r\n")
    found = read_answers(file, ONE)
    assert found.rounds[0].tolist() == [1, 0, 1]
    assert [line for line, _ in found.bad] == [5]
    assert found.estimate().labels == ("yes",)
    with pytest.raises(DataError):
        read_answers(tmp_path / "gone.csv", ONE)


def test_a_missing_column_is_said_before_anything_is_read() -> None:
    with pytest.raises(ProtocolError, match="The column round2 is missing"):
        answers_from(["round1,owner", "0,a"], TWO)
    with pytest.raises(ProtocolError, match="there twice"):
        answers_from(["round1,round2,round2", "0,0,1"], TWO)
    for lines in ([], ["answer"], ["nonsense"]):
        with pytest.raises(DataError, match="no usable row"):
            answers_from(lines, ONE).estimate()


@given(st.lists(st.text(max_size=40), max_size=12), st.sampled_from(SURVEYS))
def test_no_line_is_fatal(lines: list[str], survey: Survey) -> None:
    found = answers_from([f"{columns_of(survey)}\n", *lines], survey)
    rows = [line for line in lines if line.strip()]
    assert len(found) + len(found.bad) == len(rows)
    assert all(2 <= line <= len(lines) + 1 for line, _ in found.bad)


@pytest.mark.parametrize("survey", SURVEYS[:2], ids=lambda s: s.question)
def test_from_answers_to_an_estimate_and_back(survey: Survey) -> None:
    entropy, lines = seeded(3), []
    for k in range(300):
        sent = survey.respond(survey.options[0] if k % 2 else survey.none, entropy=entropy)
        lines.append(",".join(map(str, sent)))
    found = answers_from(lines, survey).estimate()
    assert found.labels == survey.options
    low, high = found.bounds(0.999)
    assert low[0] <= 150 <= high[0]


def test_an_answer_that_is_none_is_not_repeated() -> None:
    with pytest.raises(ProtocolError) as caught:
        ONE.respond("my secret")
    assert "secret" not in str(caught.value)
    wrong: Any
    for wrong in (None, "lax"):
        with pytest.raises(ProtocolError, match="needs a level"):
            LEVELS.respond("left", wrong)
