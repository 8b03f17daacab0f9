// The columns of a table: filled in by hand, or proposed from the first lines of a file.

import { inWords, preview } from "./api.js";
import { columnCard } from "./column-card.js";
import { readStart, recognise } from "./delimited.js";
import { h, replace } from "./dom.js";
import { field } from "./forms.js";
import { plural } from "./format.js";
import { proposals } from "./proposals.js";
import { button, notice } from "./widgets.js";

export function columnEditor(start) {
  const list = h("div", { class: "stack tight" });
  let cards = [];
  let serial = 0;
  const add = (given = {}) => {
    serial += 1;
    const card = columnCard(serial, given, {
      others: () => cards,
      remove: () => {
        if (cards.length < 2) return;
        cards = cards.filter((each) => each !== card);
        card.element.remove();
        cards[cards.length - 1].element.querySelector("summary").focus();
      },
    });
    cards.push(card);
    list.append(card.element);
    return card;
  };
  const set = (columns) => {
    cards = [];
    serial = 0;
    replace(list);
    for (const each of columns) add(each);
    // A long table is an overview first, with the first column that wants something unfolded.
    const wanting = cards.find((card) => !card.settled || !card.name());
    for (const card of cards) card.element.open = card === wanting || !card.name();
  };
  set(start);
  return {
    element: h("div", { class: "stack" }, list, h("div", {}, button("Add a column", () => add().focus(), "small"))),
    set,
    read: () => cards.map((card) => card.read()),
    hasId: () => cards.some((card) => card.role() === "id"),
  };
}

// A file whose first lines propose the columns of `editor`; `chosen` gets the file.
export function startFromFile(editor, chosen) {
  const verdict = h("div", { "aria-live": "polite" });
  const file = h("input", { type: "file", accept: ".csv,.tsv,.txt,.gz,.xlsx,.xls,.ods,.parquet,.arrow,.feather,text/csv" });
  file.addEventListener("change", async () => {
    if (!file.files.length) return;
    const [start] = file.files;
    chosen(start);
    const found = await readStart(start).then((read) => (read.other ? readByService(start, read.other) : read));
    if (file.files[0] !== start) return;
    if (found.problem) replace(verdict, notice("bad", h("p", {}, found.problem)));
    else propose(found, start.name);
  });
  const readByService = async (sent, other) => {
    replace(verdict, notice("", h("p", {}, `This is ${other}. The service is reading its first lines.`)));
    try {
      return { ...recognise(await preview(sent)), words: `${other}, read by the service, which kept nothing` };
    } catch (error) {
      return { problem: inWords(error) };
    }
  };
  const propose = (found, name) => {
    editor.set(proposals(found));
    const read = `${name}: ${found.words}. ${plural(found.first.length, "column")} proposed from ${plural(found.records.length, "line")}.`;
    const fromRows = "Whatever comes from the rows is marked and counts only once you confirm that it is public.";
    replace(verdict, found.names ? named(read, fromRows, () => propose(nameless(found), name)) : unnamed(read, fromRows));
  };
  return h("div", { class: "stack" }, field("Start from a file", file, { hint: "The first lines propose the columns. Delimited text (CSV) is read in this browser, and nothing is sent. A spreadsheet (its first sheet), Parquet or Arrow file is sent to the service, which stores nothing." }), verdict);
}

function named(read, fromRows, refuse) {
  return notice("good", h("p", {}, read), h("p", {}, fromRows), h("p", {}, "The names are those of the first line. ", h("button", { type: "button", class: "small", on: { click: refuse } }, "The first line is data")));
}

function unnamed(read, fromRows) {
  return notice("warn", h("p", {}, read), h("p", {}, "The first line looks like data, not like names of columns, so no names were taken from it: names are public. Type them here, and put them into the first line of the file before you upload it."), h("p", {}, fromRows));
}

const nameless = (found) => ({ ...found, names: null, records: [found.first, ...found.records] });
