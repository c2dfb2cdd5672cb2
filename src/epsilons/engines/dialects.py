"""How cells of text are written: what stands between them, and how numbers, dates and letters are spelled.

A dialect is declared, never guessed from rows: a guess would depend on one person's value, and fail on another's.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sqlglot import exp

from epsilons.errors import Argument, DataError

#: What `types` may say, and the engine's type for it.
TYPES = {
    "int": "BIGINT", "float": "DOUBLE", "text": "VARCHAR", "bool": "BOOLEAN", "date": "DATE", "time": "TIMESTAMP",
}  # fmt: skip

#: What may stand between cells, and its name, which is as good.
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
#: Encodings that files come in, by Python's names for them.
_ENCODINGS = (
    "utf-8", "utf-16", "utf-16-le", "utf-16-be", "iso8859-1", "iso8859-2", "iso8859-9", "iso8859-15", "cp1250",
    "cp1251", "cp1252", "cp1253", "cp1254", "cp1257", "cp437", "cp850", "cp852", "koi8-r", "mac-roman", "shift_jis",
    "cp932", "euc_jp", "gb18030", "big5", "euc_kr",
)  # fmt: skip
#: What Excel writes before the names, for itself.
SEP_LINE = re.compile(rb"sep=([,;|\t])\r?\n", re.IGNORECASE)
#: A sign of thousands that stands elsewhere: 1.5 is then not 15, nor .500 or 1234.567 a whole number. Lakhs
#: (1,00,000) are as good as thousands.
_MISPLACED = "(^|[^0-9]|[0-9]{{4}}){0}|{0}([0-9]?([^0-9]|$)|[0-9]{{2}}([^0-9{0}]|$)|[0-9]{{4}})"
_THOUSANDS = (".", ",", " ", "'", "’", "\N{NO-BREAK SPACE}", "\N{NARROW NO-BREAK SPACE}")
_CODES = re.compile(r"%(.)", re.DOTALL)
_DAY, _CLOCK = ({"d", "m", "Y"}, {"d", "m", "y"}), {"H", "I", "p", "M", "S", "f"}
#: What a day has in any format; how ISO 8601 begins; the first day whose year needs four digits.
_DIGIT, _ISO_YEAR, _EARLIEST = "[0-9]", "^[0-9]{4}[^0-9]", "1000-01-01"
#: The years that are written with two digits.
TWO_DIGITS = range(1969, 2069)
#: What each kind of source has of it; numbers of JSON are written in one way.
_OF_TEXT = ("decimal", "thousands", "dates", "times")
KNOWN = {
    "csv": ("separator", "encoding", *_OF_TEXT),
    "json": ("dates", "times"),
    "excel": _OF_TEXT,
    "frame": _OF_TEXT,
}
#: In place of what is not in an encoding; no UTF-8 has this byte, so its cell is null like any that is not UTF-8.
_UNREADABLE, _NO_TEXT = "epsilons.unreadable", b"\xff"


@dataclass(frozen=True)
class Dialect:
    """How cells of text are written. Without `dates`, dates and times are written as ISO 8601 does."""

    separator: str = ","
    decimal: str = "."
    thousands: str = ""
    dates: str = ""
    times: str = ""
    encoding: str = "utf-8"

    @classmethod
    def of(cls, given: Any, kind: str, separator: str = ",") -> Dialect:
        """What was declared of a source of this kind; refused, by the name of its part, where it is no dialect."""
        if given is None:
            return cls(separator)
        if not isinstance(given, Mapping):
            raise DataError("A dialect is given by its parts.", suggest=Argument("dialect", {"separator": ";"}))
        known = KNOWN.get(kind, ())
        for name in sorted(str(name) for name in given if name not in known):
            every = tuple(each.name for each in fields(cls))
            what = f"Unknown part {name!r} of a dialect." if name not in every else f"This source has no {name!r}."
            rule = f"It has {', '.join(known)}." if known else "Its cells have types of their own."
            hint = Argument("dialect", dict.fromkeys(known[-2:-1], "%d.%m.%Y")) if known else "no dialect"
            raise DataError(what, rule=rule, suggest=hint)
        made = cls(**{"separator": separator, **given})
        made._check()
        return made

    def _check(self) -> None:
        def refuse(part: str, rule: str, example: str) -> None:
            raise DataError(
                f"{part!r} of the dialect is not one.", rule=rule, suggest=Argument("dialect", {part: example})
            )

        for part in (each.name for each in fields(self) if not isinstance(getattr(self, each.name), str)):
            refuse(part, "Each part is a text.", getattr(PLAIN, part))
        if self.separator not in SEPARATORS:
            refuse("separator", f"One of: {', '.join(SEPARATORS.values())}.", ";")
        if self.decimal not in (".", ","):
            refuse("decimal", "A point or a comma.", ",")
        if self.thousands not in ("", *_THOUSANDS) or self.thousands == self.decimal:
            refuse("thousands", "A point, a comma, a blank or an apostrophe, other than the decimal sign.", ".")
        for part, clock, example in (("dates", False, "%d.%m.%Y"), ("times", True, "%d.%m.%Y %H:%M")):
            if not _is_format(getattr(self, part), clock):
                allowed = "%d, %m and %Y (or %y)" + (", %H (or %I with %p), %M, %S and %f" if clock else "")
                refuse(part, f"Each once: {allowed}.", example)
        if _find_encoding(self.encoding) is None:
            refuse("encoding", f"One of: {', '.join(_ENCODINGS)}.", "cp1252")

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoding", _find_encoding(self.encoding) or self.encoding)
        sign = next((sign for sign, word in SEPARATORS.items() if word == self.separator), self.separator)
        object.__setattr__(self, "separator", sign)

    def cast(self, tree: exp.Expr, kind: str) -> exp.Expr:
        """A text cell in its declared type, or null. Casts round fractions to whole numbers: those are null here."""
        tree = exp.Trim(this=tree) if kind != "text" else tree
        if kind in ("date", "time"):
            return self._moment(tree, kind)
        if kind in ("int", "float"):
            tree = self._plain_number(tree)
        value = exp.TryCast(this=tree.copy(), to=exp.DataType.build(TYPES[kind]))
        if kind != "int":
            return value
        fraction = exp.TryCast(this=tree.copy(), to=exp.DataType.build("DOUBLE"))
        exactly = exp.EQ(this=fraction, expression=exp.Cast(this=value.copy(), to=exp.DataType.build("DOUBLE")))
        return exp.Case(ifs=[exp.If(this=exactly, true=value)])

    def _moment(self, tree: exp.Expr, kind: str) -> exp.Expr:
        """A day or a time, or null. Engines take 90 for the year 90, and read words such as `infinity`: none is one."""
        formats = [self.dates] if kind == "date" else [self.times] if self.times else self._usual_times()
        typed, read = exp.DataType.build(TYPES[kind]), tree
        if formats[0]:
            listed = exp.Array(expressions=[exp.Literal.string(one) for one in formats])
            read = exp.Anonymous(this="try_strptime", expressions=[tree.copy(), listed])
        value = exp.TryCast(this=read, to=typed)
        written = exp.RegexpLike(this=tree.copy(), expression=exp.Literal.string(_DIGIT if formats[0] else _ISO_YEAR))
        early = exp.Cast(this=exp.Literal.string(_EARLIEST), to=typed.copy())
        late = exp.GTE(this=value.copy(), expression=early)
        test = exp.And(this=written, expression=late) if formats[0] else written
        return exp.Case(ifs=[exp.If(this=test, true=value)])

    def _usual_times(self) -> list[str]:
        """Where only days have a format: those, with or without the time of day."""
        return [f"{self.dates} %H:%M:%S", f"{self.dates} %H:%M", self.dates] if self.dates else [""]

    def _plain_number(self, tree: exp.Expr) -> exp.Expr:
        """With a point for the decimal sign. A sign that stands for nothing where it stands makes it no number."""
        changes = [(self.thousands, "")] if self.thousands else []
        if self.decimal == ",":
            changes += [(".", "?")] if self.thousands != "." else []
            changes += [(",", ".")]
        plain = tree
        for old, new in changes:
            pair = {"expression": exp.Literal.string(old), "replacement": exp.Literal.string(new)}
            plain = exp.Replace(this=plain.copy(), **pair)
        if not self.thousands:
            return plain
        misplaced = exp.Literal.string(_MISPLACED.format(re.escape(self.thousands)))
        found = exp.RegexpLike(this=tree.copy(), expression=misplaced)
        return exp.Case(ifs=[exp.If(this=exp.Not(this=found), true=plain)])

    def recoder(self) -> Any:
        """A function of bytes, chunk after chunk (`final` at the end), that gives the same in UTF-8."""
        decoder = codecs.getincrementaldecoder(self.encoding)(_UNREADABLE)
        return lambda chunk, final=False: decoder.decode(chunk, final).encode("utf-8", _UNREADABLE)


def usual_separator(name: str) -> str:
    """What a file of this name has between its cells, unless somebody says otherwise."""
    return "\t" if name.lower().endswith(".tsv") else ","


def propose(start: bytes, name: str) -> dict[str, str]:
    """What the first line of a file, and its name, say of how it is written: public facts, and no row.

    A line `sep=;` before it is Excel's own word. A semicolon between names is the habit of places that write 1,5 and
    24.12.2026; that is a guess, to be asked about.
    """
    wide = start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    lines = start.decode("utf-16", "replace").encode().splitlines() if wide else start.splitlines()
    said = SEP_LINE.match(lines[0] + b"\n") if lines else None
    header = b"" if not lines[said is not None :] else lines[said is not None]
    encoding = "utf-16" if wide else "utf-8"
    try:
        line = codecs.getincrementaldecoder("utf-8")().decode(header)  # its last letter may be cut in two
    except UnicodeDecodeError:
        encoding = "cp1252"
        line = header.decode(encoding, "replace")
    bare = re.sub(r'"[^"]*"', "", line)
    usual = usual_separator(name)
    separator = max(sorted(SEPARATORS, key=lambda one: one != usual), key=bare.count)
    found = {"separator": said[1].decode() if said else separator, "encoding": encoding}
    if found["separator"] == ";":
        found |= {"decimal": ",", "dates": "%d.%m.%Y"}
    return {part: said for part, said in found.items() if said != getattr(Dialect(usual), part)}


def _replace_unreadable(error: UnicodeError) -> tuple[str | bytes, int]:
    if isinstance(error, UnicodeDecodeError):
        return "\udcff", error.end  # half of a pair, which cannot be written, and so comes by here again
    assert isinstance(error, UnicodeEncodeError)
    return _NO_TEXT, error.end


codecs.register_error(_UNREADABLE, _replace_unreadable)


def _is_format(text: Any, clock: bool) -> bool:
    if not isinstance(text, str) or len(text) > 40 or "\0" in text:
        return False
    codes = _CODES.findall(text)
    days = {code for code in codes if code in "dmYy"}
    allowed = len(set(codes)) == len(codes) and (set(codes) - days) <= (_CLOCK if clock else set())
    return text == "" or (days in _DAY and allowed and text.count("%") == len(codes))


def _find_encoding(name: Any) -> str | None:
    """By any of its names; None if it is none of those that are read."""
    try:
        found = codecs.lookup(name).name if isinstance(name, str) else None
    except (LookupError, ValueError):
        return None
    found = "utf-8" if found == "utf-8-sig" else found  # such a mark is passed over in any case
    return found if found in _ENCODINGS else None


#: As most files are written.
PLAIN = Dialect()
