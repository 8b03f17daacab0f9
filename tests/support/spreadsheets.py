"""Excel files, written by hand: no library that writes them is needed."""

from __future__ import annotations

import io
import zipfile
from typing import Any

_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def spreadsheet(rows: list[list[Any]], *, far: str = "") -> bytes:
    """An Excel file with one sheet, and one more cell at `far`, such as `XFD1048576`."""
    lines = "".join(
        f'<row r="{number}">{"".join(_cell(place, number, value) for place, value in enumerate(row))}</row>'
        for number, row in enumerate(rows, 1)
    )
    if far:
        lines += f'<row r="{far.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")}"><c r="{far}"><v>1</v></c></row>'
    relation = f'<Relationship Id="r1" Type="{_OFFICE}/%s" Target="%s"/>'
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPES}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPES}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{_RELATIONS}">'
        f"{relation % ('officeDocument', 'xl/workbook.xml')}</Relationships>",
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>'
        '<sheet name="Sheet1" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_RELATIONS}">'
        f"{relation % ('worksheet', 'worksheets/sheet1.xml')}</Relationships>",
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_MAIN}"><sheetData>{lines}</sheetData></worksheet>',
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, _HEAD + content)
    return file.getvalue()


def _cell(place: int, number: int, value: Any) -> str:
    where = f"{chr(ord('A') + place)}{number}"
    if isinstance(value, str):
        return f'<c r="{where}" t="inlineStr"><is><t>{value}</t></is></c>'
    return f'<c r="{where}"><v>{value}</v></c>'
