"""Small data sets that nobody's values went into, and the neighbours to try on them."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from epsilons.arguments.checks import refuse
from epsilons.engines.readings import is_list
from epsilons.errors import Argument

#: Values of a domain that are tried, and people for whom every data set is tried rather than some.
_MOST_VALUES, _MANY_PEOPLE = 64, 6


class Pair(NamedTuple):
    """A data set, and the same with one person's value replaced."""

    person: int
    data: tuple[Any, ...]
    neighbour: tuple[Any, ...]


def check_domain(given: Any) -> tuple[Any, ...]:
    """Values that people could have: a public list."""
    listed = given.tolist() if isinstance(given, np.ndarray) else given
    values = tuple(dict.fromkeys(listed)) if is_list(listed) and all(map(_is_hashable, listed)) else ()
    if not 1 <= len(values) <= _MOST_VALUES:
        rule = f"Some values that people could have, 1 to {_MOST_VALUES} of them: public, and the extremes among them."
        raise refuse("domain", given, rule, Argument("domain", [0, 50, 100]))
    return values


def _is_hashable(value: Any) -> bool:
    return getattr(type(value), "__hash__", None) is not None


def list_datasets(domain: Sequence[Any], people: int, most: int) -> Iterator[tuple[Any, ...]]:
    """Up to `most` data sets: all of them where there are so few, else those that strain mechanisms first.

    Those are all alike, and two halves at different values; then others, in no order but always the same.
    """
    if people <= _MANY_PEOPLE and len(domain) ** people <= most:
        yield from itertools.product(domain, repeat=people)
        return
    half = people // 2
    alike = ((value,) * people for value in domain)
    split = ((a,) * half + (b,) * (people - half) for a, b in itertools.permutations(domain, 2))
    mixed = (_scatter(domain, people, number) for number in itertools.count())
    yield from itertools.islice(dict.fromkeys(itertools.islice(itertools.chain(alike, split, mixed), most)), most)


def list_pairs(
    domain: Sequence[Any], people: Sequence[int], size: int, substitutes: Sequence[Any], most: int
) -> Iterator[Pair]:
    """Data sets of `size` people and their neighbours in the people named, by substitutes for their values."""
    for data in list_datasets(domain, size, most):
        for person, value in itertools.product(people, substitutes):
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
