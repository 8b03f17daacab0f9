// Describe a new dataset: everything here is public and known without looking at rows.

import { post } from "../api.js";
import { h, replace, toast } from "../dom.js";
import { budgetFields, checkbox, decimal, field, form, guard, input, isAbove, isName, isNumber, isWhole, numberOf, radios, select, submit } from "../forms.js";
import { namesIn, usualBounds } from "../header.js";
import { button, notice } from "../widgets.js";

const WHOLE = { inputmode: "numeric" };

export async function createDataset() {
  const columns = columnEditor();
  const bounds = h("div", { class: "stack" });
  const kind = select("kind", [
    ["box", "A low and a high for every column"],
    ["ball", "A ball: within a radius of the origin"],
    ["sparse", "Sparse rows, within a radius of the origin"],
    ["ids", "Ids of public sites"],
  ]);
  const draw = () => replace(bounds, boundsFields(kind.value, columns));
  kind.addEventListener("change", draw);
  draw();
  const perPerson = input("rows_per_person", { ...WHOLE, value: "1" });

  const made = form({ class: "stack loose" }, [
    section("What it is", [
      field("Name", input("name", { placeholder: "visits-2026" }), { hint: "Lower-case letters, digits, dots and dashes. Analysts see it.", check: isName("Enter a name for the dataset.") }),
      field("Description", h("textarea", { name: "description", rows: "2", maxlength: "2000" }), { hint: "One or two sentences for analysts." }),
    ]),
    section("Columns and bounds", [
      notice("", h("p", {}, "Rows outside the bounds are moved to their edge. Derive bounds from what the numbers mean (an age, a share, an hour), never from the rows: bounds taken from the data reveal something about them.")),
      field("Bounds", kind),
      bounds,
    ]),
    section("Who is protected", [
      h(
        "div",
        { class: "columns" },
        field("Size", input("size", { ...WHOLE, placeholder: "10000" }), { hint: "Public order of magnitude of the number of records.", check: isWhole("Enter about how many records there are, for example 10000.") }),
        field("Rows per person", perPerson, { hint: "The most one person may have.", check: isWhole("Enter the largest number of rows of one person (1 or more).") }),
        field("Id column", input("id_column", { maxlength: "128" }), {
          hint: "Tells people apart; needed above one row per person. It is not stored.",
          check: (text) => (!text && Number(perPerson.value) > 1 ? "Enter the name of the column that tells people apart." : ""),
        }),
      ),
    ]),
    section("Budget", [
      budgetFields({ epsilon: "3", delta: "0.00001", hintEpsilon: "What all jobs together may spend. It can be raised, never lowered.", hintDelta: "A job usually takes 0.000001 of it. 0 offers pure differential privacy only." }),
      radios("accountant", "Accountant", [["sum", "Plain sum"], ["zcdp", "zCDP"]], "sum"),
      h("p", { class: "small muted" }, "The plain sum adds up epsilons and is easy to explain; zCDP lets many small jobs share a budget better."),
      checkbox("release_ticks", "Show results at planned times", { checked: true, hint: "Hides how long a job took, which might depend on the rows. Leave it on unless you trust every analyst." }),
    ]),
    h("div", { class: "row" }, submit("Create the dataset"), h("a", { class: "button quiet", href: "#/datasets" }, "Cancel")),
  ], async (data) => {
    const body = compose(data);
    const found = await post("/v1/datasets", body);
    toast(`${found.name} is there. Upload its rows next.`);
    location.hash = `#/datasets/${found.name}`;
  });
  const content = h(
    "div",
    { class: "stack loose" },
    h("div", { class: "stack tight" }, h("p", { class: "crumb" }, h("a", { href: "#/datasets" }, "Datasets")), h("h1", {}, "New dataset")),
    made,
  );
  return { title: "New dataset", content };
}

function section(title, children) {
  return h("section", { class: "card stack" }, h("h2", {}, title), children);
}

function boundsFields(kind, columns) {
  const radius = () => field("Radius", input("radius", { inputmode: "decimal" }), { hint: "The largest length of a row that makes sense.", check: isAbove(0, "Enter the largest length of a row that makes sense.") });
  const dimension = () => field("Number of columns", input("dimension", WHOLE), { check: isWhole("Enter the number of columns (1 or more).") });
  if (kind === "box") {
    const scaling = select("scaling", [["unit", "Every column counts the same"], ["none", "As it is: all columns in the same unit"]]);
    return [columns.element, field("Scaling", scaling, { hint: "How far apart two rows are, when columns have different ranges." })];
  }
  if (kind === "ball") return [h("div", { class: "columns" }, dimension(), radius())];
  if (kind === "sparse") return [h("div", { class: "columns" }, dimension(), radius())];
  return [field("Number of sites", input("count", WHOLE), { hint: "Rows hold ids from 0 to one less than this.", check: isWhole("Enter the number of sites (1 or more).") })];
}

// A row of inputs per column; names can be taken from the first line of a CSV file, bounds cannot.
function columnEditor() {
  const body = h("tbody", {});
  let serial = 0;
  const add = (name = "") => {
    serial += 1;
    const cell = (label, key, attributes, check) => {
      const control = input(key, { "aria-label": `${label} of column ${serial}`, ...attributes });
      return h("td", { "data-label": label }, control, guard(control, check));
    };
    const low = cell("Low", "low", { inputmode: "decimal" }, isBound("Enter the lowest value that makes sense."));
    const isHigh = (text) => isBound("Enter the highest value that makes sense.")(text) || (numberOf(text) > numberOf(low.firstChild.value) || low.firstChild.check() ? "" : "High must be above low.");
    const named = cell("Column", "column", { value: name, maxlength: "128" }, (text) => (!text ? "Enter the column's name." : namesakes(body, text) > 1 ? "Another column has this name." : ""));
    const high = cell("High", "high", { inputmode: "decimal" }, isHigh);
    const row = h("tr", {},
      named,
      low,
      high,
      h("td", {}, h("button", { type: "button", class: "icon", "aria-label": `Remove column ${serial}`, on: { click: () => body.children.length > 1 && row.remove() } }, "×")),
    );
    named.firstChild.addEventListener("change", () => offer(named.firstChild.value, low, high));
    offer(name, low, high);
    body.append(row);
    return row;
  };
  add();
  add();
  const verdict = h("div", { "aria-live": "polite" });
  const header = h("input", { type: "file", accept: ".csv,text/csv", "aria-label": "A CSV file whose first line names the columns" });
  header.addEventListener("change", async () => {
    const file = header.files[0];
    if (!file) return;
    const text = await file.slice(0, 65536).text();
    const { names, problem } = namesIn(text);
    replace(verdict, problem && notice("bad", h("p", {}, problem)));
    if (problem) return;
    body.replaceChildren();
    for (const name of names) add(name);
  });
  const heads = ["Column", "Low", "High"].map((name) => h("th", { scope: "col" }, name));
  const element = h(
    "div",
    { class: "stack" },
    h("table", { class: "fold" }, h("thead", {}, h("tr", {}, heads, h("th", { scope: "col" }, h("span", { class: "unseen" }, "Remove")))), body),
    h("div", { class: "row" }, button("Add a column", () => void add().querySelector("input").focus(), "small")),
    h("details", {}, h("summary", {}, "Take the names from a CSV file"), h("div", { class: "stack tight" }, header, verdict, h("p", { class: "small muted" }, "Only its first line is read, in this browser; nothing is sent."))),
  );
  return { element };
}

// A button that fills in the usual bounds of a column of this name; they come from its meaning, not from rows.
function offer(name, low, high) {
  high.querySelector("button")?.remove();
  const usual = usualBounds(name);
  if (!usual || low.firstChild.value || high.firstChild.value) return;
  const fill = h("button", { type: "button", class: "small quiet", on: { click: () => {
    [low.firstChild.value, high.firstChild.value] = [usual.low, usual.high];
    fill.remove();
    low.firstChild.focus();
  } } }, `Use ${usual.low} to ${usual.high}`);
  high.append(fill);
}

function isBound(missing) {
  return (text) => {
    const words = isNumber(missing)(text);
    return words.endsWith("is not a number.") ? `${words} Columns hold numbers: write a yes/no column as 1 and 0, and leave text columns out.` : words;
  };
}

function namesakes(body, name) {
  return [...body.querySelectorAll("[name=column]")].filter((each) => each.value.trim() === name).length;
}

function compose(data) {
  const body = {
    name: data.get("name").trim(),
    description: data.get("description").trim(),
    size: Number(data.get("size")),
    rows_per_person: Number(data.get("rows_per_person")),
    budget: { epsilon: decimal(data.get("epsilon")), delta: decimal(data.get("delta")) },
    accountant: data.get("accountant"),
    release_ticks: data.get("release_ticks") !== null,
  };
  if (data.get("id_column").trim()) body.id_column = data.get("id_column").trim();
  switch (data.get("kind")) {
    case "box":
      body.columns = data.getAll("column").map((name) => name.trim());
      body.bounds = { box: { low: data.getAll("low").map(numberOf), high: data.getAll("high").map(numberOf) } };
      body.scaling = data.get("scaling");
      break;
    case "ball":
      body.dimension = Number(data.get("dimension"));
      body.bounds = { ball: { radius: numberOf(data.get("radius")) } };
      break;
    case "sparse":
      body.dimension = Number(data.get("dimension"));
      body.bounds = { sparse: { radius: numberOf(data.get("radius")) } };
      break;
    default:
      body.bounds = { ids: { count: Number(data.get("count")) } };
  }
  return body;
}
