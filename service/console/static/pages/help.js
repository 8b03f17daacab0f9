// Help inside the console: one page for whoever prepares a table, one for whoever asks what an epsilon means.

import { filters, setFilter } from "../address.js";
import { h, replace } from "../dom.js";
import { field, input, isEpsilon, numberOf } from "../forms.js";
import { chanceOfGuess, epsilonInWords, oddsInWords, percent, sentence, strength } from "../format.js";
import { table } from "../widgets.js";

const PEOPLE = 100;
const EXAMPLES = [0.1, 0.5, 1, 3, 10];
// Of a hundred people who guess, how many are right at most, on average.
const rightGuesses = (epsilon) => Math.ceil(PEOPLE * chanceOfGuess(epsilon) - 1e-9);

export async function help() {
  const pages = [
    [
      "#/help/table",
      "How to prepare a table",
      "For whoever exports the data: one row for each record, names, gaps, ids.",
    ],
    [
      "#/help/epsilon",
      "What epsilon means for a person",
      "For data protection, and for everybody whose record is in a table.",
    ],
  ];
  return page("Help", [
    h(
      "ul",
      { class: "cards plain" },
      pages.map(([to, title, words]) =>
        h(
          "li",
          {},
          h(
            "article",
            { class: "card link stack" },
            h("h2", {}, h("a", { href: to }, title)),
            h("p", { class: "muted" }, words),
          ),
        ),
      ),
    ),
  ]);
}

/** @type {[string, string[]][]} */
const TABLE = [
  [
    "One line of names, then the records",
    [
      "The first line names the columns. Delete titles, notes, empty lines above it, and totals below.",
      "Each further line is one record: one stay, one visit, one customer. Records of one person may be several.",
      "Save as CSV, or as Excel, Parquet or Arrow.",
    ],
  ],
  [
    "One kind of value in each column",
    [
      "Numbers without units: “1100.50”, not “1,100.50 EUR”. Put the unit into the name of the column.",
      "Dates written alike, best as 2026-01-31.",
      "Codes such as postcodes and ICD keep their leading zeros: format the column as text before you export it.",
      "One spelling for each level: “f” and “female” are two levels.",
    ],
  ],
  [
    "What is missing stays empty",
    [
      "Leave the cell empty, or write NA. Do not write 0, 999 or “unknown” for a missing number.",
      "The curator declares for each column what a gap means: leave the row out, a fixed value, or a level of its own.",
    ],
  ],
  [
    "A column that tells people apart",
    [
      "If a person can have several rows, keep one column with a pseudonym that is the same in all of them.",
      "It is used to limit how many rows of a person count, and is not stored.",
      "Leave out names, addresses and insurance numbers: nobody needs them.",
    ],
  ],
  [
    "Bounds and levels that are known without the rows",
    [
      "For each number, the lowest and the highest value that make sense: an age from 0 to 120.",
      "For each category, the official list of levels, to be pasted into the form.",
      "These facts become public. What is read off the rows instead reveals something about somebody in them.",
    ],
  ],
];

export async function prepareTable() {
  return page("How to prepare a table", [
    TABLE.map(([title, lines]) =>
      h(
        "section",
        { class: "card stack" },
        h("h2", {}, title),
        h(
          "ul",
          {},
          lines.map((each) => h("li", {}, each)),
        ),
      ),
    ),
  ]);
}

export async function meaningOfEpsilon() {
  const asked = filters().get("epsilon") ?? "1";
  const typed = input("epsilon", { inputmode: "decimal", value: asked });
  const place = h("div", { class: "stack", "aria-live": "polite" });
  const draw = () => {
    if (isEpsilon(typed.value.trim())) return;
    const epsilon = numberOf(typed.value);
    replace(
      place,
      h(
        "p",
        { class: "big", id: "guesses" },
        `Of ${PEOPLE} people who guess, at most ${rightGuesses(epsilon)} are right on average.`,
      ),
      crowd(rightGuesses(epsilon)),
      h("p", {}, epsilonInWords(epsilon, "0", "person")),
    );
  };
  typed.addEventListener("input", () => {
    draw();
    setFilter("epsilon", typed.value.trim());
  });
  draw();
  const rows = EXAMPLES.map((each) => [
    String(each),
    `${rightGuesses(each)} of ${PEOPLE}`,
    percent(chanceOfGuess(each), 3),
    sentence(`${strength(each)}: ${oddsInWords(each)}`),
  ]);
  const headings = [
    { name: "Epsilon" },
    { name: "Right guesses" },
    { name: "Surest guess" },
    { name: "In words" },
  ];
  return page("What epsilon means for a person", [
    h(
      "section",
      { class: "card stack" },
      h("h2", {}, "A guess about one person"),
      h(
        "p",
        {},
        `Imagine ${PEOPLE} people, each of whom must guess whether one person's records are in a table. Without any ` +
          `result, half of them are right: ${PEOPLE / 2}. Now they see everything that was ever released, know all ` +
          "other records, and have unlimited computers. Epsilon limits how many of them can be right:",
      ),
      field("Epsilon", typed, { check: isEpsilon }),
      place,
    ),
    h(
      "section",
      { class: "card stack" },
      h("h2", {}, "Some values"),
      table(headings, rows, { label: "Some values" }),
      h(
        "p",
        { class: "muted" },
        "Epsilons add up: the dataset's budget limits all results together, and the ledger refuses whatever would " +
          "exceed it. Delta is the small probability with which the limit may fail; one in a million is usual.",
      ),
    ),
    h(
      "section",
      { class: "card stack" },
      h("h2", {}, "What it does not promise"),
      h(
        "ul",
        {},
        h("li", {}, "Results about groups remain true of their members, whether these took part or not."),
        h("li", {}, "Public facts, such as names of columns and bounds, are not protected."),
        h("li", {}, "Where rows are protected one by one, somebody with several rows is protected less."),
      ),
    ),
  ]);
}

// A hundred dots, of which those that guess right are filled.
function crowd(right) {
  return h(
    "div",
    { class: "crowd", role: "img", "aria-label": `${right} of ${PEOPLE} dots are filled` },
    Array.from({ length: PEOPLE }, (_, i) => h("span", { class: i < right ? "right" : null })),
  );
}

function page(title, parts) {
  const crumb = title !== "Help" && h("p", { class: "crumb" }, h("a", { href: "#/help" }, "Help"));
  const head = h("div", { class: "stack tight" }, crumb, h("h1", {}, title));
  return { title, content: h("div", { class: "stack loose" }, head, parts) };
}
