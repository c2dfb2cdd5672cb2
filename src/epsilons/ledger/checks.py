"""What may enter the ledger. Everything is checked here, once, before the ledger looks at it.

Messages never repeat what was given: a digest, a key or a description may tell something about people or questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import LedgerError, PlanError, PreferenceError
from epsilons.guarantee import NANO, NEIGHBORS
from epsilons.ledger.values import DIGEST_BYTES, Digests, Terms
from epsilons.preferences import LARGEST_EPSILON

KEY_BYTES = 32
#: The largest grant and the largest charge, in nano-epsilon; sums of them stay far below 2^63.
LARGEST = LARGEST_EPSILON * NANO
LONGEST_TEXT = 1 << 16
LARGEST_ANSWER = 1 << 30
#: How a public grant is written in an array of int64.
PUBLIC_CODE = -1

Sorted = NDArray[np.bytes_]
People = Digests | Sorted | Sequence[bytes]
Grants = NDArray[np.int64] | Sequence[int | None]


def check_digests(people: People) -> Sorted:
    """The people as an array of 16-byte strings, which sort and compare like the digests they hold.

    (A fixed width keeps trailing zero bytes apart from nothing: shorter digests are refused.)
    """
    if isinstance(people, np.ndarray):
        if people.dtype == np.uint8 and people.ndim == 2 and people.shape[1] == DIGEST_BYTES:
            return np.ascontiguousarray(people).view(f"S{DIGEST_BYTES}").reshape(-1)
        if people.dtype.itemsize == DIGEST_BYTES and people.dtype.kind in "SV" and people.ndim == 1:
            return np.ascontiguousarray(people).view(f"S{DIGEST_BYTES}")
        raise _bad_digests()
    listed = list(people)
    if not all(isinstance(person, bytes) and len(person) == DIGEST_BYTES for person in listed):
        raise _bad_digests()
    return np.frombuffer(b"".join(listed), dtype=f"S{DIGEST_BYTES}")


def _bad_digests() -> PreferenceError:
    return PreferenceError(
        "The people are not given as digests.",
        rule=f"A person is known to the ledger by a digest of {DIGEST_BYTES} bytes.",
        suggest="an array of shape (people, 16) and type uint8",
    )


def check_person(digest: bytes) -> bytes:
    """One person's digest."""
    if not isinstance(digest, bytes) or len(digest) != DIGEST_BYTES:
        raise _bad_digests()
    return digest


def check_grants(given: Grants, people: int) -> NDArray[np.int64]:
    """Grants as int64, public as -1: whole numbers of nano-epsilon from 1 to a million epsilon."""
    if isinstance(given, np.ndarray):
        if given.dtype.kind not in "iu":
            raise _bad_grant()
        if given.dtype.kind == "u" and given.size and int(given.max()) > LARGEST:
            raise _bad_grant()
        array = given.astype(np.int64)
    else:
        listed = [PUBLIC_CODE if grant is None else grant for grant in given]
        if not all(is_whole(grant) and PUBLIC_CODE <= grant <= LARGEST for grant in listed):
            raise _bad_grant()
        array = np.array(listed, dtype=np.int64)
    if array.shape != (people,):
        raise PreferenceError("There must be one grant for each person.", suggest="two arrays of the same length")
    if ((array != PUBLIC_CODE) & ((array < 1) | (array > LARGEST))).any():
        raise _bad_grant()
    return array


def _bad_grant() -> PreferenceError:
    return PreferenceError(
        "A grant cannot be used.",
        rule=f"A grant is a whole number of nano-epsilon from 1 to {LARGEST}, or public (-1 or None).",
        suggest="epsilons.preferences.to_nano",
    )


def is_whole(value: object) -> bool:
    """Whether this is a whole number; True and False are not, and neither is any float."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))


def check_charges(given: Mapping[int, int]) -> dict[int, int]:
    """Charges by cohort: positive whole numbers of nano-epsilon. Who pays nothing is not mentioned."""
    good = all(is_whole(c) and is_whole(n) and c > 0 and 1 <= n <= LARGEST for c, n in given.items())
    if not good:
        raise LedgerError(
            "A charge cannot be used.",
            rule=f"A charge is a whole number of nano-epsilon from 1 to {LARGEST}.",
            suggest="leave out cohorts that are not used",
        )
    return {int(cohort): int(nano) for cohort, nano in sorted(given.items())}


def check_key(given: bytes) -> bytes:
    """The digest of a question."""
    if not isinstance(given, bytes) or len(given) != KEY_BYTES:
        raise LedgerError("A question is known to the ledger by its digest.", rule=f"It has {KEY_BYTES} bytes.")
    return given


def check_text(given: str, what: str) -> str:
    """Public words about a question."""
    if not isinstance(given, str) or len(given) > LONGEST_TEXT or "\x00" in given or not _encodes(given):
        raise LedgerError(f"The {what} cannot be stored.", rule=f"Text of at most {LONGEST_TEXT} characters.")
    return given


def _encodes(given: str) -> bool:
    """Half a surrogate pair is no text to a database."""
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_analyst(given: str) -> str:
    """Who asks, by a name that quotas are kept under."""
    if not check_text(given, "analyst's name").strip():
        raise LedgerError("An analyst has a name.", suggest='analyst="statistics office"')
    return given


def check_quota(given: int | None, largest: int) -> int | None:
    """A whole number from 0, or None for no quota."""
    if given is not None and (not is_whole(given) or not 0 <= given <= largest):
        raise LedgerError("This quota cannot be kept.", rule="A quota is a whole number from 0, or None.")
    return None if given is None else int(given)


def check_answer(given: bytes) -> bytes:
    """The bytes that are to leave."""
    if not isinstance(given, bytes) or not given or len(given) > LARGEST_ANSWER:
        raise LedgerError("An answer is stored as bytes.", rule=f"Between 1 and {LARGEST_ANSWER} of them.")
    return given


def check_number(given: int) -> int:
    """The number of a release."""
    if not is_whole(given) or not 0 < given < 2**63:
        raise LedgerError("There is no release of this number.", suggest="ledger.history()")
    return int(given)


def check_share(given: Fraction) -> Fraction:
    """A share of everyone's grant: above 0, at most 1, and exact."""
    if not isinstance(given, Fraction) or not 0 < given <= 1:
        raise PlanError(
            "This share is not allowed.", rule="A share lies above 0 and at most at 1.", suggest="share=0.1"
        )
    return given


def check_terms(neighbors: str, rows_per_person: int, allow_individual: bool) -> Terms:
    """What is fixed for the life of a ledger."""
    if neighbors not in NEIGHBORS:
        raise LedgerError("Unknown neighbours.", suggest='neighbors="absent" or neighbors="replace"')
    if not is_whole(rows_per_person) or not 1 <= rows_per_person < 2**31:
        raise LedgerError("This number of rows per person is not allowed.", suggest="rows_per_person=1")
    if not isinstance(allow_individual, bool):
        raise LedgerError("allow_individual is either True or False.", suggest="allow_individual=False")
    return Terms(neighbors, int(rows_per_person), allow_individual)
