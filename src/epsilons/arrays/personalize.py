"""Any private algorithm made personal: a sample in which open people are likelier, then the algorithm on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from fractions import Fraction
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.arguments.checks import (
    ASSUMPTIONS,
    check_entropy,
    check_name,
    check_pilot,
    check_share,
    check_truth,
    check_whole,
    refuse,
)
from epsilons.arrays.algorithms import Algorithm, read_algorithm, run_algorithm
from epsilons.arrays.thresholds import assign_levels, cannot_rehearse, find_best, list_thresholds
from epsilons.errors import Argument, DataError, PlanError, PreferenceError
from epsilons.guarantee import NANO, NEIGHBORS, Guarantee, to_epsilon
from epsilons.mechanisms.base import Account
from epsilons.mechanisms.threshold import resolve_threshold
from epsilons.noise.coins import keep_people
from epsilons.noise.entropy import ALWAYS, Entropy, is_private, system
from epsilons.noise.weighing import keep_chance
from epsilons.planner.plan import nobody_left
from epsilons.preferences import Levels, Preferences, Roster, aligned_roster, read_ids, roster_of
from epsilons.release import Release
from epsilons.release.answer import build_release, list_caveats


def personalize(
    algorithm: Any,
    data: Any,
    epsilons: Any,
    *,
    threshold: float | str | None = None,
    neighbors: str = "absent",
    private_under: str | None = None,
    person: Any = None,
    rows_per_person: int = 1,
    share: float = 1.0,
    rescale: bool = False,
    like: Any = None,
    truth: Callable[[Any], Any] | None = None,
    pilot: float | None = None,
    entropy: Entropy | None = None,
) -> Release:
    """Run an epsilon-private algorithm on a random sample of people, so that everyone keeps their own epsilon.

    `algorithm` is a function of data and epsilon (by that name, or as the second of two arguments), an OpenDP
    measurement or a function of epsilon that makes one, or a model or tool of diffprivlib. `data` has one entry per
    person: a list, an array, a frame, or a tuple of these side by side (features and target). `threshold` is "max"
    (default), "mean" or a number: the epsilon that the algorithm runs at; or "best", which is rehearsed on old data of
    the same kind (`like`) that need no protection, against what a function gives of them without noise (`truth`). Who
    has none pays for a `pilot`: that part of every epsilon buys a first answer, of which `like`, then a function, makes
    data to rehearse on; the rest pays for the answer that counts. Both are released, and the charges are of both.
    `private_under` says under which neighbours it is private: "absent" (a record added or removed; what a plain
    function is taken to claim) or "both". With several rows per person, `person` has an id per row, at most
    `rows_per_person` rows of each are used, and the algorithm runs at a share of the threshold. Epsilons then go by id
    ({id: epsilon}, or an `eps.Roster` of everyone who was asked, with or without rows), or are a number. At a `share`
    below 1 everyone is taken to have granted that part.

    The answer speaks of the sample. How likely everyone was to be in it is a public fact, in `details`: under "chances"
    by the epsilon that is used, under "fraction" on average. An algorithm that names an argument `chances` is given
    that of each record it sees, to weigh it by (Horvitz and Thompson 1952; weights of 1/chance move its answer by as
    much, and its noise has to allow for that). For others `rescale=True` divides an answer of totals by the average: of
    numbers, lists, arrays and dicts of them. Right if preferences say nothing about values, which it says.

    The algorithm's claim covers all it does with any sample, an empty one included, and when it fails: that is an
    answer too, if only the text that it failed.

    >>> import epsilons as eps
    >>> from fractions import Fraction
    >>> from epsilons.noise.entropy import system
    >>> from epsilons.noise.laplace import discrete_laplace
    >>> def noisy_length(data, epsilon):
    ...     return len(data) + discrete_laplace(system(), Fraction(repr(epsilon)))
    >>> answer = eps.personalize(noisy_length, ["a", "b", "c"], [0.1, 1.0, 1.0])
    >>> answer.charges
    {0.1: 0.1, 1.0: 1.0}
    """
    check_name("neighbors", neighbors, NEIGHBORS)
    rescale = check_truth("rescale", rescale)
    source = system() if entropy is None else check_entropy(entropy)
    refusal = refuse("rows_per_person", rows_per_person, "A whole number from 1.", Argument("rows_per_person", 1))
    rows = check_whole(rows_per_person, refusal=refusal)
    if rows > 1 and person is None:
        whose = (Argument("person"), ", with one id per row")
        raise PlanError("Several rows per person, and nothing says whose they are.", suggest=whose)
    recipe = read_algorithm(algorithm, private_under, rows, neighbors)
    if rescale and recipe.takes_chances:
        rule, hint = "It weighs by them: totals would be scaled up twice.", ("leave ", Argument("rescale"), " out")
        raise PlanError("The algorithm asks for the chances of its records.", rule=rule, suggest=hint)
    owners, roster = _people(data, epsilons, person)
    if roster.levels.all_public:
        raise PlanError("Everyone is public.", rule="There is nothing to protect.", suggest="run it on the data itself")
    asked, part = _Asked(recipe, data, owners, roster, neighbors, rows, rescale, source), check_share(share)
    able = rows == 1 and recipe.fixed is None and str(threshold) == "best"
    if like is None and truth is None and pilot is None:
        made = asked.run(part, asked.sampling(part, threshold))
    elif not able or like is None or not callable(truth) or callable(like) != (pilot is not None):
        raise cannot_rehearse()
    elif pilot is None:
        levels = asked.levels_at(part)
        best, tried = find_best(levels, lambda t: _rehearse(t, like, levels, asked), truth(like))
        made = asked.run(part, asked.sampling(part, to_epsilon(best)), {"tried": tried})
    else:
        made = _with_pilot(asked, part, part * check_pilot(pilot), like, truth)
    return made if person is not None and roster.people is None else made.about(roster.covered)


@dataclass(frozen=True)
class _Asked:
    """What was asked of whom, before it is known which part of every epsilon pays, and at which threshold."""

    recipe: Algorithm
    data: Any
    owners: NDArray[np.int64] | None
    roster: Roster
    neighbors: str
    rows: int
    rescale: bool
    source: Entropy

    def levels_at(self, part: Fraction) -> Levels:
        """What people granted, at a part of it."""
        levels = self.roster.levels.take_share(part)
        if levels.all_public:
            raise nobody_left(part)
        return levels

    def sampling(self, part: Fraction, threshold: Any) -> Sampling:
        return Sampling.plan(self.recipe, self.levels_at(part), threshold, self.neighbors, self.rows)

    def account(self, part: Fraction, sampling: Sampling) -> Account:
        """What a run at a part of every grant costs people, by what they granted."""
        levels = self.levels_at(part)
        return Account.of(levels, levels.cut_at(sampling.threshold)).at_share(self.roster.levels, part)

    def run(
        self, part: Fraction, sampling: Sampling, tell: Mapping[str, Any] | None = None, before: Account | None = None
    ) -> Release:
        """The algorithm on a sample; `before` is what was paid for all that chose how it runs."""
        scaled, used = self.roster.take_share(part)
        people, owners, chances = len(self.roster), self.owners, sampling.chances(scaled.levels)
        kept, known, those = np.zeros(people, bool), np.zeros(people), slice(None) if used is None else used
        kept[those] = keep_people(self.source, scaled.codes, chances)
        known[those] = (np.array(chances, float) / ALWAYS)[scaled.codes]
        chosen = kept if owners is None else _cap(owners, kept, self.rows, self.source)
        by_row = (known if owners is None else known[owners])[chosen]
        told = sampling.tell(scaled.levels, self.rescale) | dict(tell or {})
        value = run_algorithm(self.recipe, _pick(self.data, chosen), sampling.epsilon, by_row, told)
        private, account = is_private(self.source) and not self.recipe.seeded, self.account(part, sampling)
        facts = (sampling.threshold, self.neighbors, self.recipe.claim, private, told)
        paid = account if before is None else account.after(before)
        return algorithm_release(self.recipe.name, value, scaled.levels, paid, *facts)


def _with_pilot(asked: _Asked, part: Fraction, first: Fraction, like: Callable[[Release], Any], truth: Any) -> Release:
    """The algorithm twice: at a first part of every epsilon for a pilot, then at the rest, as that tells.

    The threshold follows from the pilot's answer and from public facts. At every threshold the answer costs nobody more
    than the rest of their part, so with the pilot nobody pays more than the whole, whatever the pilot said.
    """
    rest, start = part - first, asked.sampling(first, None)
    levels = asked.levels_at(rest)
    for threshold in list_thresholds(levels):  # what cannot run is refused before anything is paid
        asked.sampling(rest, to_epsilon(threshold))
    pilot = asked.run(first, start)
    tried: list[list[float]] = []
    try:
        made_up = like(pilot)
        best, tried = find_best(levels, lambda t: _rehearse(t, made_up, levels, asked), truth(made_up))
    except Exception:  # of the pilot's answer alone; it is paid for, and the answer still can be had
        best = levels.largest
    value = pilot.value.tolist() if hasattr(pilot.value, "tolist") else pilot.value
    told = {"part": float(first / part), "value": value, **pilot.details}
    sampling = asked.sampling(rest, to_epsilon(best))
    return asked.run(rest, sampling, {"tried": tried, "pilot": told}, asked.account(first, start))


@dataclass(frozen=True)
class Sampling:
    """At which threshold people are sampled, and at which epsilon the algorithm runs."""

    threshold: int
    epsilon: float
    #: 2 where an algorithm that is private only under "absent" must serve "replace": everything at half.
    parts: int = 1

    @classmethod
    def plan(cls, recipe: Algorithm, levels: Levels, threshold: Any, neighbors: str, rows: int) -> Sampling:
        """From public facts alone; the epsilon is rounded down to a whole nano-epsilon, a measurement's own up."""
        parts = 2 if neighbors == "replace" and recipe.private_under != "both" else 1
        if recipe.fixed is not None:
            if threshold is not None:
                raise PlanError("A measurement has its own epsilon.", suggest=("leave ", Argument("threshold"), " out"))
            if recipe.fixed <= 0:
                raise PlanError("The measurement's map gives no loss at all.", rule="Its noise is for one record.")
            return cls(math.ceil(recipe.fixed * NANO), float(recipe.fixed))
        if isinstance(threshold, str) and threshold == "best":
            what, rule = "It is not known which threshold is best.", "No error can be predicted for it."
            raise PlanError(what, rule=rule, suggest='a number, "max" or "mean"')
        t = resolve_threshold("max" if threshold is None else threshold, levels)
        nano = t // (parts * (1 if recipe.takes_rows else rows))
        if nano == 0:
            hint = ("fewer ", Argument("rows_per_person"))
            raise PlanError("The threshold leaves nothing for each row.", rule="A billionth at least.", suggest=hint)
        recipe.check(to_epsilon(nano))
        return cls(t, to_epsilon(nano), parts)

    def chances(self, levels: Levels) -> list[int]:
        """Of staying in the sample, per level, out of 2^64: (e^eps - 1)/(e^t - 1), rounded down.

        Where everything runs at half, halves round towards privacy: the grant down, the threshold up.
        """
        least, t, parts = self.threshold, -(-self.threshold // self.parts), self.parts
        return [ALWAYS if g is None or g >= least else keep_chance(g // parts, t) for g in levels.grants]

    def tell(self, levels: Levels, rescale: bool) -> dict[str, Any]:
        """How likely people were to be in the sample: by level, and on average over the roster."""
        chances = [chance / ALWAYS for chance in self.chances(levels)]
        grants = [None if grant is None else to_epsilon(grant) for grant in levels.grants]
        fraction = sum(c * n for c, n in zip(chances, levels.sizes, strict=True)) / levels.size
        by_level = [list(pair) for pair in zip(grants, chances, strict=True)]
        return {"chances": by_level, "fraction": fraction, "rescaled": rescale}


def _rehearse(threshold: int, old: Any, levels: Levels, asked: _Asked) -> Any:
    """What the algorithm gives of a sample of old data at a threshold, whoever is on them at a level by lot."""
    sampling = Sampling.plan(asked.recipe, levels, to_epsilon(threshold), asked.neighbors, 1)
    codes, chances = assign_levels(levels, _length(old), asked.source), sampling.chances(levels)
    kept = keep_people(asked.source, codes, chances)
    by_row, told = (np.array(chances, float) / ALWAYS)[codes][kept], sampling.tell(levels, asked.rescale)
    return run_algorithm(asked.recipe, _pick(old, kept), sampling.epsilon, by_row, told)


def _people(data: Any, epsilons: Any, person: Any) -> tuple[NDArray[np.int64] | None, Roster]:
    """(the place of each row's owner on the roster, the roster); None where row i is person i.

    Who has rows is private, so it never decides who is on the roster.
    """
    length = _length(data)
    if person is None:
        roster = aligned_roster(epsilons, range(length))
        if len(roster) != length:
            raise DataError(f"{length} entries and {len(roster)} epsilons.", rule="One epsilon per person.")
        owners = None
    else:
        ids = read_ids(person)
        if len(ids) != length:
            raise DataError(f"{length} rows and {len(ids)} ids.", rule="One id per row.")
        roster = _named_roster(epsilons)
        if roster.people is None:  # one epsilon for whoever has rows
            everyone = dict.fromkeys(ids)
            roster = Roster.of(roster.levels, np.zeros(len(everyone), np.uint8))
        else:
            everyone = dict.fromkeys(roster.people)
        places = {owner: place for place, owner in enumerate(everyone)}
        if not everyone.keys() >= set(ids):
            rule = "Everyone who has rows must be on the roster."
            raise PreferenceError("A row's owner has no preference.", rule=rule, suggest="an epsilon per id")
        owners = np.array([places[owner] for owner in ids], np.int64)
    if not roster.levels.grants:
        raise DataError("There are no people.", rule="One entry and one epsilon per person.")
    return owners, roster


def _named_roster(epsilons: Any) -> Roster:
    """Everyone who was asked, by id; nobody is named where one epsilon stands for all."""
    named = epsilons.by_person if isinstance(epsilons, Preferences) and epsilons.default is None else epsilons
    if isinstance(named, Roster) and named.people is not None:
        return named
    if isinstance(named, Mapping):
        return Roster(named, epsilons)
    if isinstance(named, Number) or (isinstance(named, np.ndarray) and named.ndim == 0):
        return roster_of([named])
    rule = "Who has rows is private, so rows cannot tell who was asked."
    raise PreferenceError("With ids, epsilons go by id.", rule=rule, suggest="eps.Roster(everyone, epsilons)")


def _cap(owners: NDArray[np.int64], kept: NDArray[np.bool_], rows: int, entropy: Entropy) -> NDArray[np.bool_]:
    """At most `rows` rows of everyone who was kept, chosen by lot."""
    order = np.lexsort((entropy.words(len(owners)), owners))
    sorted_owners = owners[order]
    first = np.searchsorted(sorted_owners, sorted_owners)
    chosen = np.zeros(len(owners), bool)
    chosen[order] = (np.arange(len(owners)) - first < rows) & kept[sorted_owners]
    return chosen


def _length(data: Any) -> int:
    if isinstance(data, tuple):
        lengths = {_length(part) for part in data}
        if len(lengths) != 1:
            raise DataError("Columns of different lengths.", rule="A tuple holds columns side by side.")
        return lengths.pop()
    try:
        if not isinstance(data, Mapping | Set | str | bytes):
            return int(data.shape[0]) if hasattr(data, "shape") else len(data)
    except (TypeError, IndexError):
        pass
    raise DataError("The data are not a list or table.", rule="One entry per person.", suggest="a list, array or frame")


def _pick(data: Any, chosen: NDArray[np.bool_]) -> Any:
    """The entries of those chosen, in the same kind of container, as a copy of its own."""
    if isinstance(data, tuple):
        return tuple(_pick(part, chosen) for part in data)
    places = np.flatnonzero(chosen)
    if hasattr(data, "iloc"):  # pandas
        return data.iloc[places].copy()
    if hasattr(data, "to_pylist"):  # Arrow
        return data.take(places)
    if hasattr(data, "shape"):  # numpy, polars, sparse matrices
        return data[places]
    return [data[place] for place in places.tolist()]


def algorithm_release(
    name: str,
    value: Any,
    levels: Levels,
    account: Account,
    threshold: int,
    neighbors: str,
    claim: str,
    private: bool,
    details: Mapping[str, Any],
) -> Release:
    """The result of another's private algorithm on a sample; the promise rests on their claim, which it names."""
    why = f"A random sample, likelier the more was granted; then the algorithm at {to_epsilon(threshold):.4g}."
    if details["rescaled"]:
        why += f" Totals are divided by the average chance of being in the sample, {details['fraction']:.3g}."
    notes: tuple[str, ...] = ()
    if "pilot" in details:
        part = f"{details['pilot']['part']:.3g}"
        found = (
            "did best on data made up after it" if details["tried"] else "is the largest: nothing could be rehearsed"
        )
        why += f" That {found}, the answer of a pilot."
        notes = (f"Losses are of two answers: {part} of every epsilon bought the pilot's, which chose the threshold.",)
    return build_release(
        account,
        Guarantee(
            neighbors, account.losses, caveats=list_caveats(levels, private, (claim,), notes), measure=account.measure
        ),
        statistic=name,
        value=value,
        mechanism="sample",
        why=why,
        assumption=ASSUMPTIONS["unrelated"],
        no_interval="How far this algorithm errs is not known here.",
        details={"threshold": to_epsilon(threshold), **details},
    )
