"""Any private algorithm, as `eps.personalize` sees it: how to run it at an epsilon, and whose claim that is private.

Sample makes an algorithm personalized if it is private when a record is added or removed (Jorgensen et al. 2015,
Theorem 5). One that is private only when a record is replaced may show how many records it was given, and then the
sample's coins hide nobody: such an algorithm is refused.
"""

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from epsilons.arguments.checks import check_name
from epsilons.errors import Argument, DataError, PlanError, Text

_CALL = "lambda data, epsilon: ..."
_TOTALS = "Totals can be: numbers, and lists, arrays or dicts of them."
#: What epsilon and data are called by those who do not call them so; in this place they are the wrong way round.
_EPSILONS = {"eps", "e", "budget", "privacy", "epsilons", "privacy_budget", "loss"}
_DATA = {"data", "sample", "values", "rows", "records", "x", "df", "frame", "table", "dataset", "people", "d"}
#: Those of diffprivlib that add noise to counts to which a record adds at most 1, whatever the number of records.
_COUNTING = {"histogram", "histogram2d", "histogramdd", "count_nonzero"}


@dataclass(frozen=True)
class Algorithm:
    """An algorithm that is private at the epsilon it runs at, as its author or the caller claims.

    `private_under` is "absent" (a record added or removed) or "both" (replaced as well). `fixed` is the epsilon of an
    algorithm that has only one. `takes_rows` says that `run` is told the epsilon for all of a person's rows together.
    `check` refuses an epsilon at which it could not run, before anyone is charged.
    """

    name: str
    claim: str
    private_under: str
    run: Callable[..., Any]
    fixed: Fraction | None = None
    takes_rows: bool = False
    check: Callable[[float], Any] = lambda _: None
    seeded: bool = False
    #: Whether it names an argument `chances`: how likely each record was to be in the sample.
    takes_chances: bool = False


def read_algorithm(given: Any, private_under: str | None, rows: int, neighbors: str) -> Algorithm:
    """What was given, as an algorithm; refused if nobody says that it is private when records come and go."""
    if private_under is not None:
        check_name("private_under", private_under, ("absent", "replace", "both"))
    if private_under == "replace":
        what = "An algorithm that is private only when a record is replaced cannot be personalized."
        rule = "It may show how many records it was given, and then the sample's coins hide nobody."
        hint = (Argument("private_under", "absent"), " if it is private when a record is added or removed")
        raise PlanError(what, rule=rule, suggest=hint)
    package, name = _origin(given)
    if package == "opendp" and hasattr(given, "map"):
        loss = measured_loss(given, rows, neighbors)
        return _opendp("OpenDP measurement", lambda sample, _: _measure(given, sample), neighbors, loss)
    if package == "diffprivlib":
        return _diffprivlib(given, name, private_under)
    if not callable(given):
        rule = "A function of data and epsilon, an OpenDP measurement, or a model or tool of diffprivlib."
        raise PlanError("This is not an algorithm.", rule=rule, suggest=_CALL)
    call, takes_chances = _read_signature(given, name)
    if call is None:
        make = functools.partial(_make, given, rows, neighbors)
        made = _opendp(name, lambda sample, epsilon: _measure(make(epsilon), sample), neighbors)
        return replace(made, check=make)
    claim = f"The promise rests on the caller's claim that {name!r} is private at the epsilon it is called with."
    return Algorithm(name, claim, private_under or "absent", call, takes_chances=takes_chances)


def run_algorithm(algorithm: Algorithm, sample: Any, epsilon: float, chances: Any, told: Mapping[str, Any]) -> Any:
    """The algorithm's result; whatever it raises or warns of becomes one fixed text, since it may be data.

    `chances` are those of the sample's records, `told` is what is said of the sample. A result that cannot be rescaled
    is a failure too, which says so: it follows from what the algorithm gave.
    """
    leaks, more = False, {"chances": chances} if algorithm.takes_chances else {}
    what, rule = "The algorithm failed.", "What it raised is not shown: it may be data."
    hint: Text = "run it by itself on made-up data of the same kind"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for leak in _leak_warnings():
                warnings.simplefilter("error", leak)
            found = algorithm.run(sample, epsilon, **more)
            what, rule = "What the algorithm returned cannot be rescaled.", _TOTALS
            hint = ("leave ", Argument("rescale"), " out, and rescale by its details")
            return scale_totals(found, told["fraction"]) if told["rescaled"] else found
    except _RefusalError:  # ours, about public facts; whatever else is raised may carry data, also as one of our errors
        raise
    except (Exception, SystemExit, GeneratorExit) as error:
        leaks = isinstance(error, _leak_warnings())
    if leaks:
        what = "The algorithm says of itself that it would read public facts from the data."
        raise PlanError(what, rule="That would leak it.", suggest="give it all its bounds")
    raise DataError(what, rule=rule, suggest=hint)


def scale_totals(value: Any, fraction: float) -> Any:
    """Totals of a sample as totals of everyone: numbers, and lists, arrays or dicts of them, divided by a fraction."""
    if isinstance(value, Mapping):
        return {key: scale_totals(one, fraction) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [scale_totals(one, fraction) for one in value]
    if isinstance(value, bool):
        raise TypeError
    return value / fraction


class _RefusalError(PlanError):
    """A measurement that was made for an epsilon and cannot be run at it."""


# OpenDP --------------------------------------------------------------------------------------------------------------


def _opendp(name: str, run: Callable[[Any, float], Any], neighbors: str, fixed: Fraction | None = None) -> Algorithm:
    claim = "The promise rests on OpenDP's privacy map of the measurement, which was asked before it ran."
    return Algorithm(name, claim, "both" if neighbors == "replace" else "absent", run, fixed, takes_rows=True)


def _make(make: Callable[[float], Any], rows: int, neighbors: str, epsilon: float) -> Any:
    """What a function makes at an epsilon: a measurement, which is asked for its loss before it sees data."""
    # A scale of 1/epsilon as a float may cost a hair more than epsilon: then a hair less is asked for.
    records = rows if neighbors == "absent" else 2 * rows
    for asked in (epsilon / records, epsilon / records * (1 - 1e-6)):
        try:
            measurement = make(asked)
        except Exception:
            measurement = None
        if _origin(measurement)[0] != "opendp" or not hasattr(measurement, "map"):
            raise _RefusalError("A function of epsilon alone must make an OpenDP measurement.", suggest=_CALL)
        if measured_loss(measurement, rows, neighbors) <= Fraction(repr(epsilon)):
            return measurement
    what = f"The measurement costs more than the epsilon of {epsilon:.6g} it was made for."
    rule = "Its map must stay within the threshold, over all rows of a person."
    raise _RefusalError(what, rule=rule, suggest="dp.binary_search_chain finds a scale that does")


def _measure(measurement: Any, sample: Any) -> Any:
    """A flat array as a list where a vector is wanted: OpenDP refuses arrays whose type is not the vector's."""
    flat = getattr(sample, "ndim", 0) == 1 and hasattr(sample, "tolist")
    vector = flat and str(measurement.input_carrier_type).startswith("Vec<")
    return measurement(sample.tolist() if vector else sample)


def measured_loss(measurement: Any, rows: int, neighbors: str) -> Fraction:
    """What OpenDP's map says about `rows` records added or removed, or as many replaced."""
    metric, measure = str(measurement.input_metric), str(measurement.output_measure)
    if metric not in ("SymmetricDistance()", "InsertDeleteDistance()"):
        rule = "Sample needs privacy when records are added or removed."
        raise _RefusalError(f"The measurement is private under {metric}.", rule=rule, suggest="symmetric distance")
    if measure not in ("MaxDivergence", "MaxDivergence()"):
        what, rule = f"The measurement is private in the sense of {measure}.", "Personalized privacy here has no delta."
        raise _RefusalError(what, rule=rule, suggest="max divergence")
    if "size=" in str(measurement.input_domain):
        what = "The measurement's domain fixes how many records there are."
        raise _RefusalError(what, rule="Their number in a sample is private.", suggest="a domain without size")
    try:
        return Fraction(float(measurement.map(rows if neighbors == "absent" else 2 * rows)))
    except Exception:  # OpenDP's own errors, and a loss without end
        rule = "It is asked for one record, or for as many as a person has."
        raise _RefusalError("The measurement's privacy map gives no finite loss.", rule=rule) from None


# diffprivlib ---------------------------------------------------------------------------------------------------------


def _diffprivlib(given: Any, tool: str, private_under: str | None) -> Algorithm:
    name = f"diffprivlib {tool}"
    under = private_under or ("absent" if tool in _COUNTING else None)
    if under is None:
        what = f"{name!r} is not known to be private when a record is added or removed."
        rule = "Many of diffprivlib's tools take the number of records as public, which a sample must hide."
        raise PlanError(what, rule=rule, suggest=(Argument("private_under", "absent"), " if you know that it is"))
    claim = f"The promise rests on diffprivlib's claim that {tool!r} is private"
    claim += "." if private_under is None else ", and on the caller's that it is so when a record is added or removed."
    if inspect.isclass(given):
        raise PlanError(f"{name!r} is a class.", suggest="an instance of it, with all its bounds")
    model = hasattr(given, "fit")

    def run(sample: Any, epsilon: float) -> Any:
        if not model:
            return given(sample, epsilon=epsilon)
        # A fresh model of the same kind and settings; the caller's own is left alone.
        fresh = type(given)(**{**given.get_params(), "epsilon": epsilon})
        return fresh.fit(*sample) if isinstance(sample, tuple) else fresh.fit(sample)

    keywords = getattr(given, "keywords", None) or {}
    state = getattr(given, "random_state", None) if model else keywords.get("random_state")
    return Algorithm(name, claim, under, run, seeded=state is not None)


def _leak_warnings() -> tuple[type[Warning], ...]:
    """diffprivlib's warning that bounds are missing, if diffprivlib is loaded at all."""
    leak = getattr(sys.modules.get("diffprivlib.utils"), "PrivacyLeakWarning", None)
    return (leak,) if isinstance(leak, type) else ()


def _origin(given: Any) -> tuple[str, str]:
    """(the package that something comes from, its name), without importing it."""
    given = given.func if isinstance(given, functools.partial) else given
    module = getattr(given, "__module__", None) or type(given).__module__
    return str(module).partition(".")[0], str(getattr(given, "__name__", type(given).__name__))


def _read_signature(given: Callable[..., Any], name: str) -> tuple[Callable[..., Any] | None, bool]:
    """(how a function takes data and epsilon, whether it takes `chances`); None: it takes epsilon alone.

    Epsilon goes by its name, or both are two arguments, in this order. Everything else has a default, but `chances`. A
    signature that leaves a doubt is refused: epsilon must not land in another argument while the function runs at an
    epsilon of its own.
    """
    try:
        listed = list(inspect.signature(given).parameters.values())
        if isinstance(given, functools.partial) and given.args:
            # What was bound by place has left the signature: epsilon must not be among it.
            bound = inspect.signature(given.func).bind_partial(*given.args).arguments
            listed = [] if "epsilon" in bound else listed
    except (TypeError, ValueError):  # functions of C that do not say
        listed = []
    places = [one for one in listed if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    single = [one for one in listed if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    chances = any(one.name == "chances" and one.kind is not one.POSITIONAL_ONLY for one in single)
    if chances:
        listed, places, single = ([one for one in some if one.name != "chances"] for some in (listed, places, single))
    needed = [one for one in single if one.default is one.empty]
    epsilon = next((one for one in single if one.name == "epsilon"), None)
    if len(listed) == len(places) == 1 and (epsilon or needed) and not chances:
        return None, False
    if epsilon is not None and epsilon.kind is not epsilon.POSITIONAL_ONLY:
        data = [one for one in needed if one is not epsilon] or [one for one in places if one is not epsilon][:1]
        if len(data) == 1 and data[0] in places[:1]:
            return lambda sample, at, **more: given(sample, epsilon=at, **more), chances
        if len(data) == 1:
            return lambda sample, at, **more: given(**{data[0].name: sample, "epsilon": at}, **more), chances
    elif len(needed) == 2 and needed == places[:2] and epsilon in (None, needed[1]) and not _swapped(needed):
        return given, chances
    rule = "Epsilon goes by its name, or is the second of two arguments; all others have defaults."
    raise PlanError(f"It is not clear which arguments of {name!r} are data and epsilon.", rule=rule, suggest=_CALL)


def _swapped(needed: list[inspect.Parameter]) -> bool:
    """Whether two arguments, neither of which is called epsilon, look like epsilon and data by name or annotation."""
    first, second = (one.name.strip("_").lower() for one in needed)
    return first in _EPSILONS or second in _DATA or needed[0].annotation in (float, "float")
