"""Who is who: a person's id becomes a digest of 16 bytes, keyed by the ledger's salt.

    digest(id) = BLAKE2b-128(key=salt, person="epsilons person", tag + content)

The tag keeps kinds of ids apart: the number 1 and the text "1" are two people. Numbers are alike whatever their width,
texts if their normal forms agree (`normalise`): in composed characters (NFC), case-folded, without blanks around them.
Ledgers of the first releases took texts as they were written. Two ledgers have two salts, so digests do not show that
a person is in both. A reader of a ledger who guesses ids can look them up: the roster is not protected.
"""

from __future__ import annotations

import hashlib
import itertools
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from epsilons.errors import DataError
from epsilons.ledger.values import DIGEST_BYTES, Digests

if TYPE_CHECKING:
    import pyarrow as pa

#: An id: a whole number, a text or bytes.
Id = int | str | bytes

#: What Python strips from ASCII.
_BLANKS = " \t\n\v\f\r\x1c\x1d\x1e\x1f"
PERSONALISATION = b"epsilons person"
_NUMBER, _TEXT, _BYTES = b"i", b"s", b"b"


def encode_id(person: object) -> bytes:
    """One string of bytes for one id: a tag for its kind, then the number in base 16, UTF-8, or the bytes."""
    if isinstance(person, str):
        # A lone surrogate is no character, but may stand in an id.
        return _TEXT + person.encode("utf-8", "surrogatepass")
    if isinstance(person, (int, np.integer)) and not isinstance(person, bool):
        return _NUMBER + b"%x" % int(person)
    if isinstance(person, bytes):
        return _BYTES + person
    rule = "An id is a whole number, a text or bytes, and never missing."
    raise DataError("A person's id cannot be used.", rule=rule, suggest="a column of whole numbers or of text")


def normal_form(text: str) -> str:
    """One spelling for all of a text's: folding may ask for composing and the other way round, so until both agree.

    >>> normal_form(" E\N{COMBINING ACUTE ACCENT}VA ") == normal_form("\N{LATIN SMALL LETTER E WITH ACUTE}va")
    True
    """
    while (found := unicodedata.normalize("NFC", unicodedata.normalize("NFC", text.strip()).casefold())) != text:
        text = found
    return text


def normalise(ids: pa.Array) -> pa.Array:
    """Ids of text in normal form, whole numbers as they are. Arrow does it for ASCII, which most ids are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not (pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type)):
        return ids
    folded, other = pc.ascii_lower(pc.ascii_trim(ids, _BLANKS)), pc.invert(pc.string_is_ascii(ids))
    rest = pa.array(map(normal_form, ids.filter(other).to_pylist()), ids.type)
    return pc.replace_with_mask(folded, other, rest) if len(rest) else folded


def digests(ids: NDArray[Any] | Sequence[Id] | pa.Array | pa.ChunkedArray, salt: bytes) -> Digests:
    """The people's digests, in the order given: an array of shape (people, 16).

    >>> digests([1, "1"], bytes(16)).shape
    (2, 16)
    """
    if not isinstance(ids, np.ndarray):
        return _digest_arrow(ids, salt) if hasattr(ids, "type") else _hash_all(map(encode_id, ids), salt)
    if ids.ndim != 1:
        raise DataError("People are given as one column of ids.", suggest="an array of one dimension")
    if ids.dtype.kind in "iu":
        return _hash_all((b"%x" % number for number in ids.tolist()), salt, _NUMBER)
    return _hash_all(map(encode_id, ids.tolist()), salt)


def _digest_arrow(ids: Any, salt: bytes) -> Digests:
    """A column of Arrow: what repeats in a dictionary is hashed once, texts are read where they lie."""
    import pyarrow as pa

    pieces = ids.chunks if isinstance(ids, pa.ChunkedArray) else [ids]
    if ids.null_count:
        encode_id(None)
    done = []
    for piece in pieces:
        if pa.types.is_dictionary(piece.type):
            done.append(_digest_arrow(piece.dictionary, salt)[piece.indices.to_numpy(zero_copy_only=False)])
        elif pa.types.is_integer(piece.type):
            done.append(digests(piece.to_numpy(zero_copy_only=False), salt))
        elif pa.types.is_string(piece.type) or pa.types.is_large_string(piece.type):
            done.append(_hash_all(_read_texts(piece), salt, _TEXT))
        else:
            done.append(_hash_all(map(encode_id, piece.to_pylist()), salt))
    return np.concatenate(done) if done else np.empty((0, DIGEST_BYTES), np.uint8)


def _read_texts(piece: Any) -> Iterable[bytes]:
    """The UTF-8 of each text; Arrow keeps them end to end, with the places where they begin beside them."""
    import pyarrow as pa

    _, places, letters = piece.buffers()
    wide = np.int64 if pa.types.is_large_string(piece.type) else np.int32
    starts = np.frombuffer(places, wide)[piece.offset : piece.offset + len(piece) + 1].tolist()
    content = b"" if letters is None else letters.to_pybytes()
    return (content[start:end] for start, end in itertools.pairwise(starts))


def _hash_all(contents: Iterable[bytes], salt: bytes, tag: bytes = b"") -> Digests:
    """Copying a hash that has taken in salt and tag is quicker than starting anew."""
    copy = hashlib.blake2b(tag, digest_size=DIGEST_BYTES, key=salt, person=PERSONALISATION).copy
    done = bytearray()
    for content in contents:
        one = copy()
        one.update(content)
        done += one.digest()
    return np.frombuffer(done, np.uint8).reshape(-1, DIGEST_BYTES)
