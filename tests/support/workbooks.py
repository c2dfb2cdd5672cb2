"""Workbooks as Excel saves them, small enough to be written by hand: text shared, numbers plain, days as numbers."""

from __future__ import annotations

import struct
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
_OPEN, _OPEN_KIND = ("office", "table", "text"), "application/vnd.oasis.opendocument.spreadsheet"
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


def write_open_document(path: Path, sheets: Mapping[str, Sequence[Sequence[Any]]], more: str = "") -> Path:
    """A file as LibreOffice saves it, with these sheets; `more` are rows of XML below those of the last one."""
    tables = [
        f'<table:table table:name="{escape(name)}">'
        + "".join(f"<table:table-row>{''.join(map(open_cell, row))}</table:table-row>" for row in rows)
        for name, rows in sheets.items()
    ]
    spaces = "".join(f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in _OPEN)
    body = "</table:table>".join(tables) + more + "</table:table>"
    spreadsheet = f"<office:body><office:spreadsheet>{body}</office:spreadsheet></office:body>"
    with zipfile.ZipFile(path, "w") as package:
        package.writestr("mimetype", _OPEN_KIND)
        package.writestr(
            "content.xml", f"{_HEAD}<office:document-content{spaces}>{spreadsheet}</office:document-content>"
        )
        package.writestr(
            "META-INF/manifest.xml",
            f'{_HEAD}<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
            f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{_OPEN_KIND}"/></manifest:manifest>',
        )
    return path


def open_cell(value: Any) -> str:
    """A cell of an open document; None is an empty one."""
    if value is None:
        return "<table:table-cell/>"
    if isinstance(value, bool):
        kind, said = "boolean", f'boolean-value="{str(value).lower()}"'
    elif isinstance(value, date):
        kind, said = "date", f'date-value="{value.isoformat()}"'
    elif isinstance(value, str):
        kind, said = "string", ""
    else:
        kind, said = "float", f'value="{value!r}"'
    return (
        f'<table:table-cell office:value-type="{kind}"{" office:" * bool(said)}{said}>'
        f"<text:p>{escape(str(value))}</text:p></table:table-cell>"
    )


def write_binary_workbook(path: Path, sheet: str, rows: Mapping[int, Mapping[int, Any]]) -> Path:
    """A file of binary records with one sheet, {row: {column: value}} from 0 on; None is a format without a value."""

    def record(kind: int, data: bytes = b"") -> bytes:
        head = bytes([kind]) if kind < 0x80 else bytes([kind & 0x7F | 0x80, kind >> 7])
        sizes = bytes([len(data)]) if len(data) < 0x80 else bytes([len(data) & 0x7F | 0x80, len(data) >> 7])
        return head + sizes + data

    def text(said: str) -> bytes:
        return struct.pack("<I", len(said)) + said.encode("utf-16-le")

    def cell(column: int, value: Any) -> bytes:
        at = struct.pack("<II", column, 0)
        if value is None:
            return record(0x01, at)
        return record(0x06, at + text(value)) if isinstance(value, str) else record(0x05, at + struct.pack("<d", value))

    last = struct.pack("<IIII", 0, max(rows), 0, max(column for row in rows.values() for column in row))
    held = b"".join(
        record(0x00, struct.pack("<IIHBBBI", row, 0, 300, 0, 0, 0, 0)) + b"".join(cell(*each) for each in cells.items())
        for row, cells in rows.items()
    )
    book = record(0x9C, struct.pack("<II", 0, 1) + text("rId1") + text(sheet))
    kind = "application/vnd.ms-excel"
    relations = f"{_PACKAGE}/relationships"
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types"><Default Extension="bin" '
        f'ContentType="{kind}.sheet.binary.macroEnabled.main"/></Types>',
        "_rels/.rels": f'{_HEAD}<Relationships xmlns="{relations}"><Relationship Id="rId1" '
        f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.bin"/></Relationships>',
        "xl/_rels/workbook.bin.rels": f'{_HEAD}<Relationships xmlns="{relations}"><Relationship Id="rId1" '
        f'Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.bin"/></Relationships>',
        "xl/workbook.bin": record(0x83) + record(0x8F) + book + record(0x90) + record(0x84),
        "xl/worksheets/sheet1.bin": record(0x81)
        + record(0x94, last)
        + record(0x91)
        + held
        + record(0x92)
        + record(0x82),
    }
    with zipfile.ZipFile(path, "w") as package:
        for name, data in parts.items():
            package.writestr(name, data)
    return path


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
