"""What may enter the ledger. Everything is checked here, once, before the ledger looks at it.

Messages never repeat what was given: a digest, a key or a description may tell something about people or questions.
"""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import Argument, LedgerError, PlanError, PreferenceError, Text
from epsilons.guarantee import NANO, NEIGHBORS
from epsilons.ledger.consent import PUBLIC_CODE, Word
from epsilons.ledger.order import Sorted
from epsilons.ledger.values import DIGEST_BYTES, Digests, Terms
from epsilons.measure import Measure
from epsilons.preferences import LARGEST_EPSILON

QUESTION_KEY_BYTES = 32
#: The largest grant and the largest charge, in nano-epsilon; sums of them stay far below 2^63.
LARGEST_GRANT = LARGEST_EPSILON * NANO
LARGEST_QUOTA = 2**62
#: The largest charge, in units of any measure.
LARGEST_CHARGE = 1 << 60
LARGEST_ANSWER = 1 << 30
LONGEST_DESCRIPTION = 1 << 16
People = Digests | Sorted | Sequence[bytes]
Grants = NDArray[np.int64] | Sequence[int | None]


def check_digests(people: People) -> Sorted:
    """The people as an array of 16-byte strings, which sort and compare like the digests they hold.

    (A fixed width keeps trailing zero bytes apart from nothing: shorter digests are refused.)
    """
    width = f"S{DIGEST_BYTES}"
    if not isinstance(people, np.ndarray):
        return np.frombuffer(b"".join([check_digest(person) for person in people]), dtype=width)
    if people.dtype == np.uint8 and people.ndim == 2 and people.shape[1] == DIGEST_BYTES:
        return np.ascontiguousarray(people).view(width).reshape(-1)
    if people.dtype.itemsize == DIGEST_BYTES and people.dtype.kind in "SV" and people.ndim == 1:
        return np.ascontiguousarray(people).view(width)
    raise _bad_digests()


def check_digest(person: bytes) -> bytes:
    if not isinstance(person, bytes) or len(person) != DIGEST_BYTES:
        raise _bad_digests()
    return person


def _bad_digests() -> PreferenceError:
    return PreferenceError(
        "The people are not given as digests.",
        rule=f"A person is known to the ledger by a digest of {DIGEST_BYTES} bytes.",
        suggest="an array of shape (people, 16) and type uint8",
    )


def as_words(grants: Grants, people: int) -> tuple[NDArray[Any], list[Word]]:
    """Grants in nano-epsilon as numbers that people said."""
    distinct, asked = np.unique(check_grants(grants, people), return_inverse=True)
    return asked, [Word(code) for code in distinct.tolist()]


def check_grants(given: Grants, people: int) -> NDArray[np.int64]:
    """Grants as int64, public as -1: whole numbers of nano-epsilon from 1 to a million epsilon."""
    if isinstance(given, np.ndarray):
        good = given.dtype.kind == "i" or (given.dtype.kind == "u" and (given <= LARGEST_GRANT).all())
        array = given.astype(np.int64) if good else np.empty(0, np.int64)
    else:
        listed = [PUBLIC_CODE if grant is None else grant for grant in given]
        good = all(is_whole(grant, PUBLIC_CODE, LARGEST_GRANT) for grant in listed)
        array = np.array(listed if good else [], dtype=np.int64)
    if good and array.shape != (people,):
        raise PreferenceError("There must be one grant for each person.", suggest="two arrays of the same length")
    if not good or ((array != PUBLIC_CODE) & ((array < 1) | (array > LARGEST_GRANT))).any():
        rule = f"A grant is a whole number of nano-epsilon from 1 to {LARGEST_GRANT}, or public (-1 or None)."
        raise PreferenceError("A grant cannot be used.", rule=rule)
    return array


def is_whole(value: Any, least: int, most: int) -> bool:
    """Whether this is a whole number in that range; True and False are not, and neither is any float."""
    # Most are plain integers, and a plan has thousands of them: the look at the type is fast.
    whole = type(value) is int or (isinstance(value, Integral) and not isinstance(value, (bool, np.bool_)))
    return whole and least <= int(value) <= most


def no_release() -> LedgerError:
    return LedgerError("There is no release of this number.", suggest="a number of the history")


def check_number(given: Any) -> int:
    """The number of a release."""
    if not is_whole(given, 1, 2**63 - 1):
        raise no_release()
    return int(given)


def check_plan(
    charges: Mapping[int, int], levels: Mapping[int, int] | None
) -> tuple[dict[int, int], list[tuple[int, int, int | None]]]:
    """Charges by cohort, positive whole numbers of nano-epsilon; and everyone who is used: cohort, charge, level.

    Who pays nothing has no charge, and is used only if a level of the plan is told.
    """
    if not all(is_whole(c, 1, 2**63 - 1) and is_whole(nano, 1, LARGEST_CHARGE) for c, nano in charges.items()):
        raise bad_charge("nano-epsilon, or femto-rho,", LARGEST_CHARGE)
    told = levels or {}
    if not all(is_whole(c, 1, 2**63 - 1) and is_whole(level, 0, 2**31 - 1) for c, level in told.items()):
        raise LedgerError("A level of a plan cannot be used.", rule="Levels are numbered from 0.")
    paid = {int(cohort): int(nano) for cohort, nano in sorted(charges.items())}
    return paid, [(int(cohort), paid.get(cohort, 0), told.get(cohort)) for cohort in sorted({*paid, *told})]


def bad_charge(units: str, most: int) -> LedgerError:
    """The one refusal of a charge that no account could have."""
    rule = f"A charge is a whole number of {units} from 1 to {most}."
    return LedgerError("A charge cannot be used.", rule=rule, suggest="leave out cohorts that are not used")


def check_question_key(given: bytes) -> bytes:
    if not isinstance(given, bytes) or len(given) != QUESTION_KEY_BYTES:
        raise LedgerError("A question is known to the ledger by its digest.", rule=f"{QUESTION_KEY_BYTES} bytes.")
    return given


def check_description(given: str, what: str) -> str:
    """Public text about a question. Databases store neither a null character nor half a surrogate pair."""
    if not isinstance(given, str) or len(given) > LONGEST_DESCRIPTION or re.search("[\0\ud800-\udfff]", given):
        raise LedgerError(f"The {what} cannot be stored.", rule=f"Text of at most {LONGEST_DESCRIPTION} characters.")
    return given


def check_analyst_name(given: str) -> str:
    """Who asks, by a name that quotas are kept under."""
    if not check_description(given, "analyst's name").strip():
        raise LedgerError("An analyst has a name.", suggest=Argument("analyst", "statistics office"))
    return given


def check_quota(given: int | None) -> int | None:
    """A whole number from 0, or None for no quota."""
    if given is not None and not is_whole(given, 0, LARGEST_QUOTA):
        raise LedgerError("This quota cannot be kept.", rule="A quota is a whole number from 0, or None.")
    return None if given is None else int(given)


def check_answer(given: bytes) -> bytes:
    if not isinstance(given, bytes) or not given or len(given) > LARGEST_ANSWER:
        raise LedgerError("An answer is stored as bytes.", rule=f"Between 1 and {LARGEST_ANSWER} of them.")
    return given


def check_exact_share(given: Fraction) -> Fraction:
    """A share of everyone's grant: above 0, at most 1, and exact."""
    if not isinstance(given, Fraction) or not 0 < given <= 1:
        rule = "A share is larger than 0 and at most 1."
        raise PlanError("This share is not allowed.", rule=rule, suggest=Argument("share", 0.1))
    return given


def check_terms(neighbors: str, rows_per_person: int | None, allow_individual: bool, measure: str = "pure") -> Terms:
    if neighbors not in NEIGHBORS:
        either = (Argument("neighbors", "absent"), " or ", Argument("neighbors", "replace"))
        raise LedgerError("Unknown neighbours.", suggest=either)
    if rows_per_person is not None and not is_whole(rows_per_person, 1, 2**31 - 1):
        raise LedgerError("This number of rows per person is not allowed.", suggest=Argument("rows_per_person", 1))
    if not isinstance(allow_individual, bool):
        given = (Argument("allow_individual"), " is either True or False.")
        raise LedgerError(given, suggest=Argument("allow_individual", False))
    try:
        concentrated = Measure.of_text(measure).delta is not None
    except (AttributeError, ValueError):
        known: Text = (
            Argument("measure", "pure"),
            ", or ",
            Argument("measure", "zcdp"),
            " and ",
            Argument("delta", 1e-6),
        )
        raise LedgerError("This measure of privacy is not kept here.", suggest=known) from None
    if concentrated and allow_individual:
        rule = "Individual privacy is told in epsilons as they are, which a concentrated account does not count."
        raise LedgerError("These terms exclude each other.", rule=rule, suggest=Argument("allow_individual", False))
    return Terms(neighbors, None if rows_per_person is None else int(rows_per_person), allow_individual, measure)
