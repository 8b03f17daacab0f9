// The columns of a box: numbers only, with a low and a high for each.

import { inWords } from "../api.js";
import { h, replace } from "../dom.js";
import { firstLines } from "./first-lines.js";
import { guard, input, isNumber, numberOf } from "../forms.js";
import { sentence } from "../format.js";
import { button, notice } from "../widgets.js";

/**
 * A row of inputs per column. A file proposes their names, and bounds that follow from a name, never
 * from rows.
 * @param {object} reading the editor of how files are written
 */
export function boxEditor(reading) {
  const body = h("tbody", {});
  let serial = 0;
  const add = ({ name = "", low: lowest = "", high: highest = "" } = {}) => {
    serial += 1;
    const cell = (label, key, attributes, check) => {
      const control = input(key, { "aria-label": `${label} of column ${serial}`, ...attributes });
      return h("td", { "data-label": label }, control, guard(control, check));
    };
    const low = cell(
      "Low",
      "low",
      { inputmode: "decimal", value: String(lowest) },
      isBound("Enter the lowest value that makes sense."),
    );
    const lowControl = /** @type {import("../dom.js").Control} */ (low.firstChild);
    const isHigh = (text) => {
      const wrong = isBound("Enter the highest value that makes sense.")(text);
      if (wrong) return wrong;
      return lowControl.check() || numberOf(text) > numberOf(lowControl.value)
        ? ""
        : "High must be above low.";
    };
    const named = cell("Column", "column", { value: name, maxlength: "128" }, (text) =>
      !text ? "Enter the column's name." : namesakes(body, text) > 1 ? "Another column has this name." : "",
    );
    const high = cell("High", "high", { inputmode: "decimal", value: String(highest) }, isHigh);
    const row = h(
      "tr",
      {},
      named,
      low,
      high,
      h(
        "td",
        {},
        h(
          "button",
          {
            type: "button",
            class: "icon",
            "aria-label": `Remove column ${serial}`,
            on: { click: () => body.children.length > 1 && row.remove() },
          },
          "×",
        ),
      ),
    );
    body.append(row);
    return row;
  };
  add();
  add();
  const verdict = h("div", { "aria-live": "polite" });
  const header = h("input", {
    type: "file",
    accept: ".csv,text/csv",
    "aria-label": "A CSV file whose first line names the columns",
  });
  header.addEventListener("change", async () => {
    const file = header.files[0];
    if (!file) return;
    try {
      const found = await firstLines(file);
      if (header.files[0] !== file) return;
      replace(verdict, found.problem && notice("bad", h("p", {}, sentence(found.problem))));
      reading.set(found.reading);
      if (!found.names.length) return;
      body.replaceChildren();
      for (const each of found.columns) add(withoutRows(each));
    } catch (error) {
      replace(verdict, notice("bad", h("p", {}, inWords(error))));
    }
  });
  const heads = ["Column", "Low", "High"].map((name) => h("th", { scope: "col" }, name));
  const element = h(
    "div",
    { class: "stack" },
    h(
      "table",
      { class: "fold" },
      h("thead", {}, h("tr", {}, heads, h("th", { scope: "col" }, h("span", { class: "unseen" }, "Remove")))),
      body,
    ),
    h(
      "div",
      { class: "row" },
      button("Add a column", () => void add().querySelector("input").focus(), "small"),
    ),
    h(
      "details",
      {},
      h("summary", {}, "Take the names from a CSV file"),
      h(
        "div",
        { class: "stack tight" },
        header,
        verdict,
        h(
          "p",
          { class: "small muted" },
          "The browser sends its first lines to this service, which stores nothing.",
        ),
      ),
    ),
  );
  return {
    element,
    count: () => body.children.length,
    reshape(count) {
      while (body.children.length < count) add();
      while (body.children.length > count) body.lastElementChild.remove();
    },
  };
}

// The name of a proposed column, with its bounds if they do not come from rows.
function withoutRows({ name, low, high, from_rows: fromRows }) {
  return low === undefined || fromRows.includes("low") || fromRows.includes("high")
    ? { name }
    : { name, low, high };
}

function isBound(missing) {
  return (text) => {
    const words = isNumber(missing)(text);
    return words.endsWith("is not a number.")
      ? `${words} Such rows hold numbers only: describe a table above for anything else.`
      : words;
  };
}

function namesakes(body, name) {
  return [...body.querySelectorAll("[name=column]")].filter((each) => each.value.trim() === name).length;
}
