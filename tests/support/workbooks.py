"""Workbooks as Excel saves them, small enough to be written by hand: text shared, numbers plain, days as numbers."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from string import ascii_uppercase
from typing import Any
from xml.sax.saxutils import escape

_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def write_workbook(path: Path, sheets: Mapping[str, Sequence[Sequence[Any]]]) -> Path:
    """A file with these sheets; None is an empty cell."""
    places = list(enumerate(sheets, 1))
    named = "".join(f'<sheet name="{escape(name)}" sheetId="{i}" r:id="rId{i}"/>' for i, name in places)
    bound = "".join(
        f'<Relationship Id="rId{i}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{i}.xml"/>' for i, _ in places
    )
    bound += f'<Relationship Id="rId0" Type="{_OFFICE}/styles" Target="styles.xml"/>'
    kinds = "".join(
        f'<Override PartName="/xl/worksheets/sheet{i}.xml" ContentType="{_KIND}.worksheet+xml"/>' for i, _ in places
    )
    kinds += f'<Override PartName="/xl/workbook.xml" ContentType="{_KIND}.sheet.main+xml"/>'
    kinds += '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">{kinds}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="rId1" '
        f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{named}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{bound}</Relationships>',
        # The formats: general, a day (14) and a day with its time (22).
        "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"><cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14"/>'
        '<xf numFmtId="22"/></cellXfs></styleSheet>',
    }
    for i, name in places:
        rows = "".join(f'<row r="{j}">{_cells(j, row)}</row>' for j, row in enumerate(sheets[name], 1))
        parts[f"xl/worksheets/sheet{i}.xml"] = f'<worksheet xmlns="{_MAIN}"><sheetData>{rows}</sheetData></worksheet>'
    with zipfile.ZipFile(path, "w") as package:
        for part, text in parts.items():
            package.writestr(part, _HEAD + text)
    return path


def _cells(row: int, values: Sequence[Any]) -> str:
    return "".join(_cell(f"{chr(65 + place)}{row}", value) for place, value in enumerate(values) if value is not None)


def _cell(at: str, value: Any) -> str:
    if isinstance(value, str):
        return f'<c r="{at}" t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
    if isinstance(value, bool):
        return f'<c r="{at}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, date):
        whole = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        days = (whole - datetime(1899, 12, 30)).total_seconds() / 86_400
        return f'<c r="{at}" s="{2 if isinstance(value, datetime) else 1}"><v>{days!r}</v></c>'
    return f'<c r="{at}"><v>{value!r}</v></c>'


def add_cells(path: Path, sheet: int, cells: Mapping[str, Any]) -> Path:
    """The same file with rows of one cell each below the others, at these places; None is a format without a value."""
    part = f"xl/worksheets/sheet{sheet}.xml"
    with zipfile.ZipFile(path) as package:
        parts = {name: package.read(name).decode() for name in package.namelist()}
    more = "".join(
        f'<row r="{at.lstrip(ascii_uppercase)}">'
        + (f'<c r="{at}" s="1"/>' if value is None else _cell(at, value))
        + "</row>"
        for at, value in cells.items()
    )
    parts[part] = parts[part].replace("</sheetData>", f"{more}</sheetData>")
    with zipfile.ZipFile(path, "w") as package:
        for name, text in parts.items():
            package.writestr(name, text)
    return path
