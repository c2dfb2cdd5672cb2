"""Small data sets that nobody's values went into, and the neighbours to try on them."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from epsilons.arguments.checks import refuse
from epsilons.engines.readings import is_list, quietly
from epsilons.errors import Argument

#: Values of a domain that are tried, and people for whom every data set is tried rather than some.
_MOST_VALUES, MANY_PEOPLE = 64, 6


class Pair(NamedTuple):
    """A data set, and the same with one person's value replaced."""

    person: int
    data: tuple[Any, ...]
    neighbour: tuple[Any, ...]


def check_domain(given: Any) -> tuple[Any, ...]:
    """Values that people could have: a public list."""
    listed = given.tolist() if isinstance(given, np.ndarray) else given
    values = tuple(quietly(dict.fromkeys, listed) or ()) if is_list(listed) else ()
    if not 1 <= len(values) <= _MOST_VALUES:
        rule = f"Some values that people could have, 1 to {_MOST_VALUES} of them: public, and the extremes among them."
        raise refuse("domain", given, rule, Argument("domain", [0, 50, 100]))
    return values


def list_datasets(domain: Sequence[Any], people: int, most: int) -> Iterator[tuple[Any, ...]]:
    """Up to `most` data sets: those that strain mechanisms first, then all others where there are so few, else some.

    Those are all alike; two halves at different values; the same with somebody apart from both halves, at either end of
    the roster. Some are in no order but always the same.
    """
    values = extremes_first(domain)
    few = people <= MANY_PEOPLE and len(domain) ** people <= most
    rest: Iterator[tuple[Any, ...]] = itertools.product(domain, repeat=people)
    if not few:
        rest = itertools.islice((_scatter(domain, people, number) for number in itertools.count()), most)
    yield from itertools.islice(dict.fromkeys(itertools.chain(_strained(values, people, most), rest)), most)


def _strained(values: Sequence[Any], people: int, most: int) -> Iterator[tuple[Any, ...]]:
    half, others = people // 2, (people - 1) // 2
    alike = ((value,) * people for value in values)
    split = ((a,) * half + (b,) * (people - half) for a, b in itertools.permutations(values, 2))
    around = [(a,) * others + (b,) * (people - 1 - others) for a, b in itertools.permutations(values[:3], 2)]
    apart = (data for rest, one in itertools.product(around, values) for data in ((one, *rest), (*rest, one)))
    # Whoever is apart comes before halves of all pairs of values, of which there may be many.
    first = itertools.islice(split, 6)
    return itertools.islice(itertools.chain(alike, first, apart, split), most)


def extremes_first(domain: Sequence[Any]) -> list[Any]:
    """The same values: of numbers the least and the largest first, of others the first and the last."""
    numbers = [value for value in domain if isinstance(value, int | float)]
    others = [value for value in domain if value is not None] or domain
    ends = (min(numbers), max(numbers)) if numbers else (others[0], others[-1])
    return list(dict.fromkeys([*ends, *domain]))


def list_pairs(
    domain: Sequence[Any], people: Sequence[int], size: int, substitutes: Sequence[Any], most: int
) -> Iterator[Pair]:
    """Data sets of `size` people and their neighbours in the people named, by substitutes for their values."""
    for data in list_datasets(domain, size, most):
        for value, person in itertools.product(substitutes, people):
            if value is not data[person] and value != data[person]:
                yield Pair(person, data, (*data[:person], value, *data[person + 1 :]))


def _scatter(domain: Sequence[Any], people: int, number: int) -> tuple[Any, ...]:
    """Values without order, the same in every run: the steps of SplitMix64."""
    words = np.arange(1, people + 1, dtype=np.uint64) + np.uint64(number * people)
    words *= np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    places = (words ^ (words >> np.uint64(31))) % np.uint64(len(domain))
    return tuple(domain[place] for place in places.tolist())
