// The columns of a box: numbers only, with a low and a high for each.

import { readStart } from "../delimited.js";
import { h, replace } from "../dom.js";
import { guard, input, isNumber, numberOf } from "../forms.js";
import { usualBounds } from "../proposals.js";
import { button, notice } from "../widgets.js";

// A row of inputs per column; names can be taken from the first line of a CSV file, bounds cannot.
export function boxEditor() {
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
    const { names, problem } = await readStart(file);
    const words = problem ?? (names ? "" : "The first line of this file looks like data, not like names of columns, so nothing was taken from it. Names are public: add a first line with the names, or type them here.");
    replace(verdict, words && notice("bad", h("p", {}, words)));
    if (words) return;
    body.replaceChildren();
    for (const name of names) add(name);
  });
  const heads = ["Column", "Low", "High"].map((name) => h("th", { scope: "col" }, name));
  const element = h(
    "div",
    { class: "stack" },
    h("table", { class: "fold" }, h("thead", {}, h("tr", {}, heads, h("th", { scope: "col" }, h("span", { class: "unseen" }, "Remove")))), body),
    h("div", { class: "row" }, button("Add a column", () => void add().querySelector("input").focus(), "small")),
    h("details", {}, h("summary", {}, "Take the names from a CSV file"), h("div", { class: "stack tight" }, header, verdict, h("p", { class: "small muted" }, "Only its first lines are read, in this browser; nothing is sent."))),
  );
  return element;
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
    return words.endsWith("is not a number.") ? `${words} Such rows hold numbers only: describe a table above for anything else.` : words;
  };
}

function namesakes(body, name) {
  return [...body.querySelectorAll("[name=column]")].filter((each) => each.value.trim() === name).length;
}
