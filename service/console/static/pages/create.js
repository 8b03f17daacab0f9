// Describe a new dataset: everything here is public and known without looking at rows.

import { get, post } from "../api.js";
import { keepFile } from "../datasets/chosen-file.js";
import { columnEditor, startFromFile } from "../datasets/column-editor.js";
import { h, replace, toast } from "../dom.js";
import {
  budgetFields,
  checkbox,
  decimal,
  field,
  form,
  input,
  isAbove,
  isName,
  isWhole,
  numberOf,
  radios,
  select,
  submit,
} from "../forms.js";
import { readingEditor } from "../datasets/reading.js";
import { notice } from "../widgets.js";
import { boxEditor } from "../datasets/box-columns.js";

const WHOLE = { inputmode: "numeric" };

export async function createDataset() {
  const accountants = (await get("/v1/accountants")).items;
  const columns = columnEditor([{}, {}]);
  const reading = readingEditor();
  let file = null;
  const start = startFromFile(columns, reading, {
    chosen(found) {
      file = found;
    },
    severalRows() {
      if (perPerson.value === "1") perPerson.value = ""; // to be entered
    },
  });
  const box = boxEditor(reading);
  const described = h("div", { class: "stack" });
  const kind = select("kind", [
    ["table", "A table: numbers, categories, dates, yes or no"],
    ["box", "Numbers only: for public sites, or columns in the same unit"],
    ["ball", "Numbers within a radius of the origin (a ball)"],
    ["sparse", "Sparse rows, within a radius of the origin"],
    ["ids", "Ids of public sites"],
  ]);
  const perPerson = input("rows_per_person", { ...WHOLE, value: "1" });
  const idColumn = field("Id column", input("id_column", { maxlength: "128" }), {
    hint: "Tells people apart. Required if a person can have more than one row. It is not stored.",
    check: (text) =>
      !text && Number(perPerson.value) > 1 ? "Enter the name of the column that tells people apart." : "",
  });
  const draw = () => {
    const isTable = kind.value === "table";
    reading.named(isTable || kind.value === "box");
    replace(described, isTable ? [start, columns.element] : boundsFields(kind.value, box.element));
    idColumn.hidden = idColumn.querySelector("input").disabled = isTable;
  };
  kind.addEventListener("change", draw);
  draw();
  const isPerPerson = (text) => {
    const wrong = isWhole("Enter the largest number of rows of one person (1 or more).")(text);
    if (wrong || kind.value !== "table" || Number(text) === 1 || columns.hasId()) return wrong;
    return "Choose above the column that is used for telling people apart.";
  };

  const made = form(
    { class: "stack loose" },
    [
      section("What it is", [
        field("Name", input("name", { placeholder: "visits-2026" }), {
          hint: "Lower-case letters, digits, dots, dashes and underscores. Analysts see it.",
          check: isName("Enter a name for the dataset."),
        }),
        field("Description", h("textarea", { name: "description", rows: "2", maxlength: "2000" }), {
          hint: "One or two sentences for analysts.",
        }),
      ]),
      section("Columns", [
        notice(
          "",
          h(
            "p",
            {},
            "All of this is public. Derive bounds and levels from what the values mean (an " +
              "age, a share, a region), never from the rows: what is taken from the rows " +
              "reveals something about them. Values outside the bounds are clipped to them. ",
            h("a", { href: "#/help/table" }, "How to prepare a table"),
          ),
        ),
        field("Rows are", kind),
        described,
      ]),
      section("How the file is written", [
        reading.element,
        h(
          "p",
          { class: "small muted" },
          "This is public, and every record is read by it alone. It matters for delimited text only.",
        ),
      ]),
      section("Who is protected", [
        h(
          "div",
          { class: "columns" },
          field("Size", input("size", { ...WHOLE, placeholder: "10000" }), {
            hint: "Public order of magnitude of the number of records.",
            check: isWhole("Enter about how many records there are, for example 10000."),
          }),
          field("Rows per person", perPerson, {
            hint: "The most one person may have. More than one needs a column that tells people apart.",
            check: isPerPerson,
          }),
          idColumn,
        ),
        field(
          "Rows arrive",
          select("unit", [
            ["", "once: the dataset has no periods"],
            ["record", "in periods, and budgets protect each record"],
            ["person-in-period", "in periods, and budgets protect each person in one period"],
            ["person", "in periods, and one budget protects each person in all of them"],
          ]),
          {
            hint:
              "With periods, size and rows per person are those of one period. So is the budget, unless " +
              "one budget protects each person in all of them. This cannot be changed later.",
          },
        ),
      ]),
      section("Budget", [
        budgetFields({
          epsilon: "3",
          delta: "0.00001",
          hintEpsilon: "What all jobs together may spend. It can be raised, never lowered.",
          hintDelta: "A job usually takes 1×10⁻⁶ of it. 0 offers pure differential privacy only.",
        }),
        radios(
          "accountant",
          "Accountant",
          accountants.map(({ name, title }) => [name, title]),
          accountants[0].name,
        ),
        accountants.map(({ title, advice }) => h("p", { class: "small muted" }, `${title} ${advice}.`)),
        checkbox("planned_release", "Show results at planned times", {
          checked: true,
          hint:
            "Hides how long a job took, which might depend on the rows. Leave it on unless you " +
            "trust every analyst.",
        }),
      ]),
      h(
        "div",
        { class: "row" },
        submit("Create the dataset"),
        h("a", { class: "button quiet", href: "#/datasets" }, "Cancel"),
      ),
    ],
    async (data) => {
      const found = await post("/v1/datasets", compose(data, columns, reading));
      if (data.get("kind") === "table") keepFile(found.name, file);
      toast(`${found.name} is created. ${found.unit ? "Add its first period" : "Upload its rows"} next.`);
      location.hash = `#/datasets/${found.name}${found.unit ? "/periods" : ""}`;
    },
  );
  made.shape = {
    read: () => ({ columns: columns.shape(), rows: box.count(), reading: reading.proposed() }),
    restore(shape) {
      columns.reshape(shape.columns);
      box.reshape(shape.rows);
      reading.set(shape.reading);
    },
  };
  const content = h(
    "div",
    { class: "stack loose" },
    h(
      "div",
      { class: "stack tight" },
      h("p", { class: "crumb" }, h("a", { href: "#/datasets" }, "Datasets")),
      h("h1", {}, "New dataset"),
    ),
    made,
  );
  return { title: "New dataset", content };
}

function section(title, children) {
  return h("section", { class: "card stack" }, h("h2", {}, title), children);
}

function boundsFields(kind, box) {
  const radius = () =>
    field("Radius", input("radius", { inputmode: "decimal" }), {
      hint: "The largest length of a row that makes sense.",
      check: isAbove(0, "Enter the largest length of a row that makes sense."),
    });
  const dimension = () =>
    field("Number of columns", input("dimension", WHOLE), {
      check: isWhole("Enter the number of columns (1 or more)."),
    });
  if (kind === "box") {
    const scaling = select("scaling", [
      ["unit", "Every column counts the same"],
      ["none", "As it is: all columns in the same unit"],
    ]);
    return [
      box,
      field("Scaling", scaling, { hint: "How far apart two rows are, when columns have different ranges." }),
    ];
  }
  if (kind === "ids")
    return [
      field("Number of sites", input("count", WHOLE), {
        hint: "Rows hold ids from 0 to one less than this.",
        check: isWhole("Enter the number of sites (1 or more)."),
      }),
    ];
  return [h("div", { class: "columns" }, dimension(), radius())];
}

function compose(data, columns, reading) {
  const body = {
    name: data.get("name").trim(),
    description: data.get("description").trim(),
    size: Number(data.get("size")),
    rows_per_person: Number(data.get("rows_per_person")),
    budget: { epsilon: decimal(data.get("epsilon")), delta: decimal(data.get("delta")) },
    accountant: data.get("accountant"),
    planned_release: data.get("planned_release") !== null,
    reading: reading.read(),
  };
  if (data.get("unit")) body.unit = data.get("unit");
  if (data.get("id_column")?.trim()) body.id_column = data.get("id_column").trim();
  switch (data.get("kind")) {
    case "table":
      body.table = columns.read();
      break;
    case "box":
      body.columns = data.getAll("column").map((name) => name.trim());
      body.bounds = {
        box: { low: data.getAll("low").map(numberOf), high: data.getAll("high").map(numberOf) },
      };
      body.scaling = data.get("scaling");
      break;
    case "ids":
      body.bounds = { ids: { count: Number(data.get("count")) } };
      break;
    default:
      body.dimension = Number(data.get("dimension"));
      body.bounds = { [data.get("kind")]: { radius: numberOf(data.get("radius")) } };
  }
  return body;
}
