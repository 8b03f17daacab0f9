// How a delimited text file is written: a public fact of a dataset, declared before the file is read.

import { h, replace } from "../dom.js";
import { checkbox, field, select } from "../forms.js";
import { confirmation, mark, stillFromRows } from "./from-rows.js";
import { notice } from "../widgets.js";

const PLAIN = {
  encoding: "utf-8",
  separator: ",",
  decimal: ".",
  thousands: "",
  quoted_lines: false,
  header: true,
};
const ENCODINGS = {
  "utf-8": "UTF-8",
  "utf-16": "UTF-16",
  "windows-1252": "Windows-1252",
  "latin-1": "Latin-1",
};
const SEPARATORS = { ",": "Comma", ";": "Semicolon", "\t": "Tab", "|": "Vertical bar" };
const GROUPING = [",", ".", " ", "'"];
const QUOTED =
  "Otherwise every line is a record. Choose it only for files that need it: a quote that is left open then " +
  "takes in the lines that follow.";
const MARKS = { ".": "point", ",": "comma", " ": "blank", "'": "apostrophe" };

/**
 * A reading in one sentence: "Semicolon-separated text in Latin-1 with decimal commas".
 * @param {object} reading
 * @returns {string}
 */
export function readingWords(reading) {
  const { encoding, separator, decimal, thousands, quoted_lines: quotedLines, header } = reading;
  const notes = [
    `${SEPARATORS[separator]}-separated text in ${ENCODINGS[encoding]} with decimal ${MARKS[decimal]}s`,
    thousands && `${MARKS[thousands]}s between thousands`,
    quotedLines && "line breaks in quoted fields",
    header === false && "no header line",
  ];
  return notes.filter(Boolean).join(", ");
}

/**
 * Facts of a reading in words.
 * @param {object} reading
 * @param {string[]} facts
 * @returns {string[]}
 */
function factWords(reading, facts) {
  const words = {
    encoding: () => `encoding ${ENCODINGS[reading.encoding]}`,
    decimal: () => `decimal ${MARKS[reading.decimal]}s`,
    thousands: () => `${MARKS[reading.thousands]}s between thousands`,
    quoted_lines: () => "line breaks in quoted fields",
  };
  return facts.map((fact) => words[fact]());
}

/**
 * The form of a reading: a sentence, its fields behind "Change", and a confirmation of what came from rows.
 * @param {object} start the reading of a dataset; what it leaves out is as in plain CSV
 * @returns {{element: HTMLElement, set: Function, proposed: Function, read: Function, isChanged: Function, named: Function}}
 */
export function readingEditor(start = {}) {
  const controls = readingControls();
  const words = h("p", { "aria-live": "polite" });
  /** @type {HTMLElement} */
  const header = controls.header.closest(".choice");
  let proposed = {};

  const read = () => ({ ...controls.read(), header: header.hidden || controls.header.checked });
  const fromRows = () => stillFromRows(proposed, read());
  const confirm = confirmation("From the rows", "change them", () => [["", factWords(read(), fromRows())]]);
  const draw = () => {
    replace(words, `${readingWords(read())}.`);
    for (const fact of ["encoding", "decimal", "thousands", "quoted_lines"]) {
      mark(controls[fact], fromRows().includes(fact));
    }
    confirm.draw();
  };
  const set = (reading) => {
    proposed = reading;
    controls.set({ ...PLAIN, ...reading });
    draw();
  };
  const title = h("summary", {}, "Change", h("span", { class: "unseen" }, " how the file is written"));
  const fold = h("details", { class: "change" }, title, controls.element);
  fold.addEventListener("input", draw);
  const element = h("div", { class: "stack" }, words, confirm.element, fold);
  set(Object.fromEntries(Object.entries(start).filter(([, value]) => value !== null)));
  const before = JSON.stringify(read());
  return {
    element,
    set,
    proposed: () => proposed,
    read: () => ({ ...read(), ...(fromRows().length && { confirmed_from_rows: fromRows() }) }),
    isChanged: () => JSON.stringify(read()) !== before,
    // Only columns without names can come from a file without a header line.
    named(hasNames) {
      header.hidden = hasNames;
      controls.header.disabled = hasNames;
      draw();
    },
  };
}

// The fields of a reading, by the names of its facts.
function readingControls() {
  const titled = (words) => words.charAt(0).toUpperCase() + words.slice(1);
  const encoding = select("encoding", Object.entries(ENCODINGS));
  const separator = select("separator", Object.entries(SEPARATORS));
  const decimal = select("decimal", [
    [".", "Point: 1.5"],
    [",", "Comma: 1,5"],
  ]);
  const marks = GROUPING.map((sign) => [sign, titled(MARKS[sign])]);
  const thousands = select("thousands", [["", "None"], ...marks]);
  const quoted = checkbox("quoted_lines", "Fields in quotes may contain line breaks", { hint: QUOTED });
  const header = checkbox("header", "The first line names the columns", { checked: true });
  const isSame = () => thousands.value && thousands.value === decimal.value;
  const differs = () => (isSame() ? "Choose another mark than the decimal sign." : "");
  const element = h(
    "div",
    { class: "stack" },
    h(
      "div",
      { class: "columns narrow" },
      field("Encoding", encoding),
      field("Separator", separator, { hint: "Between fields." }),
      field("Decimal sign", decimal),
      field("Between thousands", thousands, { check: differs }),
    ),
    quoted,
    header,
  );
  const texts = { encoding, separator, decimal, thousands };
  const flags = { quoted_lines: quoted.querySelector("input"), header: header.querySelector("input") };
  return {
    ...texts,
    ...flags,
    element,
    set(reading) {
      for (const [fact, control] of Object.entries(texts)) control.value = reading[fact];
      for (const [fact, control] of Object.entries(flags)) control.checked = reading[fact];
    },
    read() {
      const chosen = Object.entries(texts).map(([fact, control]) => [fact, control.value]);
      return { ...Object.fromEntries(chosen), quoted_lines: flags.quoted_lines.checked };
    },
  };
}

/**
 * What the service proposes for a file that does not fit its dataset's reading.
 * @param {object} proposed a reading with `from_rows`
 * @param {HTMLElement} accept the button that declares it
 * @returns {HTMLElement}
 */
export function readingProposal(proposed, accept) {
  const fromRows = factWords(proposed, proposed.from_rows);
  const origin = fromRows.length
    ? `From its rows: ${fromRows.join("; ")}. Read it like this only if you know that without the rows, or ` +
      "it may be public: everybody with a grant sees it."
    : "The first line shows this; nothing of it came from the rows.";
  return notice(
    "warn",
    h("p", {}, `The file seems to be: ${readingWords(proposed)}.`),
    h("p", {}, origin),
    h("div", { class: "row" }, accept),
  );
}

/**
 * A declared reading as it is sent to accept a proposal.
 * @param {object} proposed a reading with `from_rows`
 * @returns {object} `reading` of `PATCH /v1/datasets/{name}`
 */
export function accepted({ from_rows: fromRows, ...reading }) {
  return { ...reading, confirmed_from_rows: fromRows };
}
