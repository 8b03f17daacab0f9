// Tables as files: a spreadsheet with every digit, and a page with rounded numbers that text processors take.

import { number } from "../format.js";

/** @typedef {(string | number | null)[][]} Rows the first row is the heading */

const ZIP_TIME = 0x5a21; // files of the archive carry one moment: 1 January 2025
const SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const PACKAGE = "http://schemas.openxmlformats.org/package/2006";
const OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const FORMULA = /^'*[=+\-@\t\r]/;
const HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>';

const escaped = (text) =>
  String(text)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");

/**
 * A table to paste, with an apostrophe before each text that a spreadsheet might take for a formula.
 * @param {Rows} rows
 * @returns {string}
 */
export function pasteable(rows) {
  const cell = (value) => (typeof value === "string" && FORMULA.test(value) ? `'${value}` : (value ?? ""));
  return rows.map((row) => row.map(cell).join("\t")).join("\n");
}

/**
 * A spreadsheet in the format of Excel.
 * @param {Record<string, Rows>} sheets by their names
 * @returns {Blob}
 */
export function workbook(sheets) {
  const names = Object.keys(sheets);
  const part = (i) => `xl/worksheets/sheet${i + 1}.xml`;
  const types = names.map((_, i) => `<Override PartName="/${part(i)}" ContentType="${MAIN("worksheet")}"/>`);
  const relation = (i, kind, target) =>
    `<Relationship Id="r${i}" Type="${OFFICE}/${kind}" Target="${target}"/>`;
  const relations = (list) =>
    `${HEAD}<Relationships xmlns="${PACKAGE}/relationships">${list.join("")}</Relationships>`;
  const listed = names.map(
    (name, i) => `<sheet name="${escaped(name.slice(0, 31))}" sheetId="${i + 1}" r:id="r${i}"/>`,
  );
  return zipped({
    "[Content_Types].xml":
      `${HEAD}<Types xmlns="${PACKAGE}/content-types">` +
      '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>' +
      `<Override PartName="/xl/workbook.xml" ContentType="${MAIN("sheet.main")}"/>${types.join("")}</Types>`,
    "_rels/.rels": relations([relation(0, "officeDocument", "xl/workbook.xml")]),
    "xl/workbook.xml": `${HEAD}<workbook xmlns="${SHEET}" xmlns:r="${OFFICE}"><sheets>${listed.join("")}</sheets></workbook>`,
    "xl/_rels/workbook.xml.rels": relations(
      names.map((_, i) => relation(i, "worksheet", `worksheets/sheet${i + 1}.xml`)),
    ),
    ...Object.fromEntries(names.map((name, i) => [part(i), sheet(sheets[name])])),
  });
}

const MAIN = (kind) => `application/vnd.openxmlformats-officedocument.spreadsheetml.${kind}+xml`;

function sheet(rows) {
  const cell = (value) =>
    typeof value === "number" && Number.isFinite(value)
      ? `<c><v>${value}</v></c>`
      : `<c t="inlineStr"><is><t xml:space="preserve">${escaped(value ?? "")}</t></is></c>`;
  const lines = rows.map((row) => `<row>${row.map(cell).join("")}</row>`);
  return `${HEAD}<worksheet xmlns="${SHEET}"><sheetData>${lines.join("")}</sheetData></worksheet>`;
}

/**
 * A page with a table, rounded, and what to cite.
 * @param {string} title
 * @param {Rows} rows
 * @param {string} citation
 * @returns {Blob}
 */
export function tablePage(title, [heading, ...rows], citation) {
  const text = (value) => escaped(typeof value === "number" ? number(value, 3) : (value ?? ""));
  const line = (tag, row) => `<tr>${row.map((each) => `<${tag}>${text(each)}</${tag}>`).join("")}</tr>`;
  const page =
    `<!doctype html><html><head><meta charset="utf-8"><title>${escaped(title)}</title></head><body>` +
    `<h1>${escaped(title)}</h1><table border="1">${line("th", heading)}${rows.map((row) => line("td", row)).join("")}</table>` +
    `<p>${escaped(citation)}</p></body></html>`;
  return new Blob([page], { type: "text/html" });
}

// A ZIP archive whose files are stored as they are.
function zipped(files) {
  const encoder = new TextEncoder();
  const parts = [];
  const directory = [];
  let place = 0;
  for (const [name, text] of Object.entries(files)) {
    const [title, data] = [encoder.encode(name), encoder.encode(text)];
    const common = [20, 0x800, 0, 0, ZIP_TIME];
    const sizes = [checksum(data), data.length, data.length];
    const head = fields([0x04034b50], common, sizes, [title.length, 0]);
    directory.push(
      fields([0x02014b50], [20, ...common], sizes, [title.length, 0, 0, 0, 0], [0, place]),
      title,
    );
    parts.push(head, title, data);
    place += head.length + title.length + data.length;
  }
  const length = directory.reduce((sum, each) => sum + each.length, 0);
  const count = Object.keys(files).length;
  const end = fields([0x06054b50], [0, 0, count, count], [length, place], [0]);
  const type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
  return new Blob([...parts, ...directory, end], { type });
}

// Little-endian numbers: lists of four bytes each and of two bytes each, in turn.
function fields(...groups) {
  const bytes = groups.flatMap((group, i) =>
    group.flatMap((value) =>
      Array.from({ length: i % 2 ? 2 : 4 }, (_, shift) => (value >>> (8 * shift)) & 255),
    ),
  );
  return Uint8Array.from(bytes);
}

function checksum(data) {
  let sum = 0xffffffff;
  for (const byte of data) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  return (sum ^ 0xffffffff) >>> 0;
}
