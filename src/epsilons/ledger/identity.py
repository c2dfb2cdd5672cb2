"""Who is who: a person's id becomes a digest of 16 bytes, keyed by the ledger's salt.

    digest(id) = the first 16 bytes of SHA-256(the salt in base 16, tag, content)

The tag keeps kinds of ids apart: the number 1 and the text "1" are two people. Numbers are alike whatever their width,
and are hashed as they are written; texts are alike if their normal forms agree (`normalise`): in composed characters
(NFC), case-folded, without blanks around them. Ledgers of the first releases took texts as they were written. Two
ledgers have two salts, so digests do not show that a person is in both. A reader of a ledger who guesses ids can look
them up: the roster is not protected.

The kind of digest is a term of the ledger. Those made before format 4 keep BLAKE2b, which is as good, but which no
engine computes: of many ids DuckDB makes the digests, in all threads.
"""

from __future__ import annotations

import hashlib
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
#: The kinds of digest.
SHA_256, BLAKE_2 = "sha256", "blake2b"
PERSONALISATION = b"epsilons person"
_NUMBER, _TEXT, _BYTES = b"i", b"s", b"b"
#: From so many on, the engine is quicker; it reads them in pieces, one for each thread at a time.
_MANY, _PIECE = 1 << 14, 1 << 17


def encode_id(person: object, kind: str = SHA_256) -> bytes:
    """One string of bytes for one id: a tag for its kind, then the number as it is written, UTF-8, or the bytes."""
    if isinstance(person, str):
        # A lone surrogate is no character, but may stand in an id.
        return _TEXT + person.encode("utf-8", "surrogatepass")
    if isinstance(person, (int, np.integer)) and not isinstance(person, bool):
        return _NUMBER + (b"%d" if kind == SHA_256 else b"%x") % int(person)
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


def digests(ids: NDArray[Any] | Sequence[Id] | pa.Array | pa.ChunkedArray, salt: bytes, kind: str = SHA_256) -> Digests:
    """The people's digests, in the order given: an array of shape (people, 16).

    >>> digests([1, "1"], bytes(16)).shape
    (2, 16)
    """
    if isinstance(ids, np.ndarray):
        if ids.ndim != 1:
            raise DataError("People are given as one column of ids.", suggest="an array of one dimension")
        if kind == SHA_256 and ids.dtype.kind in "iu" and len(ids) >= _MANY:
            import pyarrow as pa

            return _digest_in_engine(pa.array(ids), salt, _NUMBER)
    elif hasattr(ids, "type"):
        return _digest_arrow(ids, salt, kind)
    return _hash_all(
        (encode_id(one, kind) for one in (ids.tolist() if isinstance(ids, np.ndarray) else ids)), salt, kind
    )


def _digest_arrow(ids: Any, salt: bytes, kind: str) -> Digests:
    """A column of Arrow: what repeats in a dictionary is hashed once."""
    import pyarrow as pa

    if ids.null_count:
        encode_id(None)
    if pa.types.is_dictionary(ids.type):
        pieces = ids.chunks if isinstance(ids, pa.ChunkedArray) else [ids]
        known = [_digest_arrow(piece.dictionary, salt, kind)[piece.indices.to_numpy()] for piece in pieces]
        return np.concatenate([np.empty((0, DIGEST_BYTES), np.uint8), *known])
    text = pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type)
    if kind == SHA_256 and len(ids) >= _MANY and (text or pa.types.is_integer(ids.type)):
        return _digest_in_engine(ids, salt, _TEXT if text else _NUMBER)
    return _hash_all((encode_id(one, kind) for one in ids.to_pylist()), salt, kind)


def _digest_in_engine(ids: Any, salt: bytes, tag: bytes) -> Digests:
    """By a DuckDB of its own, which keeps the order and has nothing else to read."""
    import duckdb
    import pyarrow as pa

    pieces = pa.Table.from_batches(pa.table({"id": ids}).to_batches(max_chunksize=_PIECE))
    made, done = np.empty((len(ids), DIGEST_BYTES), np.uint8), 0
    query = "SELECT unhex(left(sha256(concat($before, id)), $length)) AS digest FROM pieces"
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET enable_progress_bar = false")  # it would be printed into our output
        connection.register("pieces", pieces)
        given = {"before": salt.hex() + tag.decode(), "length": 2 * DIGEST_BYTES}
        for batch in connection.sql(query, params=given).to_arrow_reader(_PIECE):
            found = np.frombuffer(batch["digest"].buffers()[2], np.uint8)[: len(batch) * DIGEST_BYTES]
            made[done : done + len(batch)] = found.reshape(-1, DIGEST_BYTES)
            done += len(batch)
    return made


def _hash_all(contents: Iterable[bytes], salt: bytes, kind: str) -> Digests:
    """Copying a hash that has taken in the salt is quicker than starting anew."""
    started: Any = hashlib.sha256(salt.hex().encode())
    if kind == BLAKE_2:
        started = hashlib.blake2b(digest_size=DIGEST_BYTES, key=salt, person=PERSONALISATION)
    done = bytearray()
    for content in contents:
        one = started.copy()
        one.update(content)
        done += one.digest()[:DIGEST_BYTES]
    return np.frombuffer(done, np.uint8).reshape(-1, DIGEST_BYTES)
