"""The whole demo as one JSON document."""

from __future__ import annotations

from typing import Any

from epsilons.demo import words
from epsilons.demo.budgets import Books
from epsilons.demo.people import GROUPS, PREFERENCE_SEED, RECIPE, Population
from epsilons.demo.questions import CONFIDENCE, SHARE, Answer, Answered

FORMAT = 2


def to_document(people: Population, answered: tuple[Answered, ...], books: Books, report: str) -> dict[str, Any]:
    """Plain values only; a table of numbers is a list of [low, high, number]."""
    promise = answered[0].best.release.guarantee
    return {
        "format": FORMAT,
        "data": {"name": "AER CPS1988", "people": len(people), "about": words.DATA.format(people=len(people))},
        "preferences": {
            "simulated": True,
            "seed": PREFERENCE_SEED,
            "recipe": RECIPE,
            "groups": [
                {"name": group.name, "people": people.size(place), "lowest": group.low, "highest": group.high}
                for place, group in enumerate(GROUPS)
            ],
        },
        "confidence": CONFIDENCE,
        "questions": [_question(one) for one in answered],
        "guarantee": {
            "kind": promise.kind,
            "neighbors": promise.neighbors,
            "in_words": words.NEIGHBORS[promise.neighbors],
            "caveats": [*promise.caveats, *words.NOT_PROMISED],
        },
        "ledger": {
            "share": SHARE,
            "releases": books.releases,
            "entries": books.entries,
            "same_question_again_is_free": books.same_again,
            "spending": [list(step) for step in books.spending],
            "levels": [{"granted": granted, "left": left} for granted, left in books.levels.items()],
            "groups": [
                {
                    "name": group.name,
                    "average_granted": group.granted,
                    "average_left": group.left,
                    "questions_like_the_last_one_left": list(group.questions),
                }
                for group in books.groups
            ],
        },
        "report": report,
    }


def _question(one: Answered) -> dict[str, Any]:
    asked = one.asked
    return {
        "name": asked.name,
        "statistic": asked.statistic,
        "question": asked.words,
        "unit": asked.unit,
        "guess": asked.guess,
        "truth_for_comparison_only": _plain(one.truth),
        "best": one.best.mechanism,
        "answers": [_answer(answer) for answer in one.answers],
    }


def _answer(answer: Answer) -> dict[str, Any]:
    low, high = answer.charged
    return {
        "mechanism": answer.mechanism,
        "value": _plain(answer.release.value),
        "predicted_error": answer.release.error,
        "interval": _plain(answer.interval),
        "true_error_for_comparison_only": answer.true_error,
        "people_used": answer.used,
        "charged": {"lowest": low, "highest": high},
        "private": answer.release.private,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return [[*key, *(number if isinstance(number, tuple) else (number,))] for key, number in value.items()]
    return list(value) if isinstance(value, tuple) else value
