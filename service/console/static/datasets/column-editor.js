// The columns of a table: filled in by hand, or proposed by the service from the first lines of a file.

import { inWords } from "../api.js";
import { columnCard } from "./column-card.js";
import { h, replace } from "../dom.js";
import { firstLines } from "./first-lines.js";
import { field } from "../forms.js";
import { plural, sentence } from "../format.js";
import { confirmation } from "./from-rows.js";
import { readingWords } from "./reading.js";
import { button, notice } from "../widgets.js";

const FILES = ".csv,.tsv,.txt,.gz,.xlsx,.xls,.ods,.parquet,.arrow,.feather,text/csv";
// Columns that want something: more than these are not unfolded at once.
const MANY_WANTING = 5;
const FORMATS = { excel: "a spreadsheet", parquet: "a Parquet file", arrow: "an Arrow file" };

/**
 * The form of a table's columns, with one confirmation of what came from rows.
 * @param {object[]} start declared columns, or empty ones
 */
export function columnEditor(start) {
  const list = h("div", { class: "stack tight" });
  let cards = [];
  let serial = 0;
  const shapes = new WeakMap(); // the number of each card, and what it was made of
  const confirm = confirmation("From the rows", "change the marked fields", () =>
    cards.map((card) => [card.title(), card.fromRows()]),
  );
  for (const event of ["input", "change"]) list.addEventListener(event, confirm.draw);
  const add = (given = {}) => {
    serial += 1;
    const card = columnCard(serial, given, {
      others: () => cards,
      remove: () => {
        if (cards.length < 2) return;
        cards = cards.filter((each) => each !== card);
        card.element.remove();
        confirm.draw();
        cards[cards.length - 1].element.querySelector("summary").focus();
      },
    });
    cards.push(card);
    shapes.set(card, [serial, given]);
    list.append(card.element);
    return card;
  };
  const set = (columns) => {
    cards = [];
    serial = 0;
    replace(list);
    for (const each of columns) add(each);
    // A table is an overview first, with the columns that want something unfolded: of many, the first one.
    const wanting = cards.filter((card) => !card.settled || !card.name());
    const unfolded = wanting.slice(0, wanting.length > MANY_WANTING ? 1 : undefined);
    for (const card of cards) card.element.open = unfolded.includes(card);
    confirm.draw();
  };
  set(start);
  const more = h(
    "div",
    {},
    button("Add a column", () => add().focus(), "small"),
  );
  return {
    element: h("div", { class: "stack" }, list, more, confirm.element),
    set,
    read: () => cards.map((card) => card.read()),
    shape: () => cards.map((card) => shapes.get(card)),
    // The same cards again, as `shape` described them.
    reshape(described) {
      cards = [];
      replace(list);
      for (const [number, given] of described) {
        serial = number - 1;
        add(given);
      }
      confirm.draw();
    },
    hasId: () => cards.some((card) => card.role() === "id"),
  };
}

/**
 * A file whose first lines propose columns and how the file is written.
 * @param {object} columns a column editor
 * @param {object} reading a reading editor
 * @param {{chosen: (file: File) => void, severalRows: () => void}} told `chosen` gets the file; `severalRows` is
 *   called if a person has more than one row
 */
export function startFromFile(columns, reading, { chosen, severalRows }) {
  const verdict = h("div", { "aria-live": "polite" });
  const file = h("input", { type: "file", accept: FILES });
  const read = async (start, firstLine) => {
    replace(verdict, notice("", h("p", {}, "The service is reading its first lines …")));
    let found = null;
    let problem = null;
    try {
      found = await firstLines(start, firstLine);
    } catch (error) {
      problem = inWords(error);
    }
    if (file.files[0] !== start) return;
    if (problem) replace(verdict, notice("bad", h("p", {}, problem)));
    else propose(found, start);
  };
  const propose = (found, start) => {
    columns.set(found.columns);
    if (found.repeated_id) severalRows();
    reading.set(found.reading);
    const words = FORMATS[found.format] ?? readingWords(found.reading);
    const columnCount = plural(found.columns.length, "column");
    const lines = [
      `${start.name}: ${words}. ${columnCount} proposed from its first lines.`,
      "Whatever comes from the rows is marked, and counts only once you confirm that it is public.",
    ];
    lines.push(...found.remarks);
    const isNamed = found.names.length > 0;
    replace(verdict, isNamed ? named(lines, () => read(start, "data")) : unnamed(lines, found.problem));
  };
  file.addEventListener("change", async () => {
    if (!file.files.length) return;
    const [start] = file.files;
    chosen(start);
    await read(start, "names");
  });
  const hint =
    "The browser sends the first lines of a text file, or all of a spreadsheet, Parquet or Arrow file, to " +
    "this service. It proposes the columns and how the file is written, and stores nothing.";
  return h("div", { class: "stack" }, field("Start from a file", file, { hint }), verdict);
}

function named(lines, refuse) {
  const attributes = { type: "button", class: "small", on: { click: refuse } };
  const isData = h("button", attributes, "The first line is data");
  const names = h("p", {}, "The names are those of the first line. ", isData);
  return notice(
    "good",
    lines.map((words) => h("p", {}, words)),
    names,
  );
}

function unnamed(lines, problem) {
  const why = problem ? sentence(problem) : "The first line is data, so no names were taken from it.";
  const next = "Type the names here, and put them into the first line of the file before you upload it.";
  return notice(
    "warn",
    lines.map((words) => h("p", {}, words)),
    h("p", {}, why),
    h("p", {}, next),
  );
}
