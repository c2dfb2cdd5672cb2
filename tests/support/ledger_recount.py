"""Balances from the lines of an exported journal: a second recount that imports nothing of the package."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

Balance = tuple[int | None, int, int, int]


def balances(lines: Iterable[Mapping[str, Any]]) -> dict[int, Balance]:
    """{cohort: (granted, spent, reserved, people)} of the cohorts that anybody is in.

    Asserts the chain, and that nobody is ever charged too much.
    """
    head = "0" * 64
    granted: dict[int, int | None] = {}
    spent: defaultdict[int, int] = defaultdict(int)
    earlier: defaultdict[int, int] = defaultdict(int)
    reserved: defaultdict[int, int] = defaultdict(int)
    people: defaultdict[int, int] = defaultdict(int)
    held: dict[int, dict[int, int]] = {}
    # Of whom records were lost: until they consent anew, nothing of any grant is left.
    lost: dict[int, bool] = {}
    floor = 0
    for place, line in enumerate(lines, 1):
        parts = [head, line["seq"], line["kind"], line["at"], line["body"]]
        head = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        assert (line["seq"], line["hash"]) == (place, head)
        body = json.loads(line["body"])
        for made in body.get("made", ()):
            lost[made["id"]] = json.loads(made.get("datasets", "{}")).get("lost", False)
        for made in body.get("made", ()):  # what earlier periods count for, where a grant is renewed
            earlier[made["id"]] = json.loads(made.get("datasets", "{}")).get("renews", [0])[-1]
        match line["kind"]:
            case "roster" | "renew":
                for made in body["made"]:
                    granted[made["id"]], spent[made["id"]] = made["granted"], made["spent"]
                for number, cohort, nano in body["carried"]:
                    held[number][cohort] = nano
                    reserved[cohort] += nano
                for group in (*body.get("joined", ()), *body["moved"]):
                    people[group["target"]] += group["people"]
                for group in body.get("joined", ()):
                    if floor < 0:
                        assert lost[group["target"]] or body["anew"]
                    else:
                        assert spent[group["target"]] == floor
                for group in body["moved"]:
                    people[group["origin"]] -= group["people"]
                    if lost[group["origin"]] and not lost[group["target"]]:
                        assert body["anew"]
                    elif line["kind"] == "roster":
                        assert spent[group["target"]] >= spent[group["origin"]]
                    if lost[group["target"]] and line["kind"] == "roster":
                        assert spent[group["target"]] >= (granted[group["target"]] or 0)
                    if line["kind"] == "renew":  # as much is granted as before, and nothing of it is spent yet
                        assert granted[group["origin"]] == granted[group["target"]]
                        assert spent[group["target"]] == 0
            case "reserve":
                held[body["number"]] = {cohort: nano for cohort, nano, *_ in body["charges"] if nano}
                for cohort, nano in held[body["number"]].items():
                    reserved[cohort] += nano
                    limit = granted[cohort]
                    assert limit is not None
                    assert spent[cohort] + reserved[cohort] <= limit
            case "merge":
                for made in body["made"]:
                    granted[made["id"]], spent[made["id"]] = made["granted"], made["spent"]
                for group in body["moved"]:
                    origin, target = group["origin"], group["target"]
                    people[origin] -= group["people"]
                    people[target] += group["people"]
                    # Nobody has more left than before, or another promise.
                    assert spent[target] + earlier[target] == spent[origin] + earlier[origin] + group["rounded"]
                    assert spent[target] >= spent[origin]
                    assert earlier[target] >= earlier[origin]
                    assert (granted[origin] is None) == (granted[target] is None)
                    assert (granted[target] or 0) <= (granted[origin] or 0)
                    assert reserved[origin] == reserved[target] == 0
            case "touch" | "refund":
                for cohort, nano in held.pop(body["number"]).items():
                    reserved[cohort] -= nano
                    spent[cohort] += nano if line["kind"] == "touch" else 0
            case "loss":
                held.clear()
                floor = -1 if min(floor, body["floor"]) < 0 else floor + body["floor"]
                for cohort, limit in granted.items():
                    spent[cohort] += reserved.pop(cohort, 0) + max(body["floor"], 0)
                    if body["floor"] < 0:
                        spent[cohort], lost[cohort] = max(spent[cohort], limit or 0), True
    found = {cohort: (limit, spent[cohort], reserved[cohort], people[cohort]) for cohort, limit in granted.items()}
    return {cohort: balance for cohort, balance in found.items() if balance[3]}
