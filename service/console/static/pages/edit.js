// Correct what was declared about a table that is still a draft.

import { get, patch } from "../api.js";
import { columnEditor } from "../datasets/column-editor.js";
import { h, toast } from "../dom.js";
import { field, form, input, isWhole, submit } from "../forms.js";
import { readingEditor } from "../datasets/reading.js";
import { notice } from "../widgets.js";

export async function editDraft(_context, name) {
  const found = await get(`/v1/datasets/${name}`);
  const columns = columnEditor(found.table);
  const reading = readingEditor(found.reading);
  reading.named(true);
  const isPerPerson = (text) =>
    isWhole("Enter the largest number of rows of one person (1 or more).")(text) ||
    (Number(text) === 1 || columns.hasId() ? "" : "Choose the column that is used for telling people apart.");
  const back = `#/datasets/${name}`;
  const made = form(
    { class: "stack loose" },
    [
      found.upload &&
        notice(
          "warn",
          h(
            "p",
            {},
            "You have looked at a report on the rows. Whatever you change now is marked " +
              "“changed after a look at the rows” for every analyst, because it may reveal " +
              "something about them. Changing anything but the size also deletes the uploaded " +
              "rows.",
          ),
        ),
      h(
        "section",
        { class: "card stack" },
        h("h2", {}, "What it is"),
        field(
          "Description",
          h("textarea", { name: "description", rows: "2", maxlength: "2000" }, found.description),
        ),
        h(
          "div",
          { class: "columns" },
          field("Size", input("size", { inputmode: "numeric", value: String(found.size) }), {
            hint: "Public order of magnitude of the number of records.",
            check: isWhole("Enter about how many records there are."),
          }),
          field(
            "Rows per person",
            input("rows_per_person", { inputmode: "numeric", value: String(found.rows_per_person) }),
            { hint: "The most one person may have.", check: isPerPerson },
          ),
        ),
      ),
      h("section", { class: "card stack" }, h("h2", {}, "Columns"), columns.element),
      h("section", { class: "card stack" }, h("h2", {}, "How the file is written"), reading.element),
      h(
        "div",
        { class: "row" },
        submit("Save the changes"),
        h("a", { class: "button quiet", href: back }, "Cancel"),
      ),
    ],
    async (data) => {
      await patch(`/v1/datasets/${name}`, {
        description: data.get("description").trim(),
        size: Number(data.get("size")),
        rows_per_person: Number(data.get("rows_per_person")),
        table: columns.read(),
        ...(reading.isChanged() && { reading: reading.read() }),
      });
      toast("The changes are saved.");
      location.hash = back;
    },
  );
  made.shape = { read: columns.shape, restore: columns.reshape };
  const content = h(
    "div",
    { class: "stack loose" },
    h(
      "div",
      { class: "stack tight" },
      h(
        "p",
        { class: "crumb" },
        h("a", { href: "#/datasets" }, "Datasets"),
        " / ",
        h("a", { href: back }, name),
      ),
      h("h1", {}, `Edit ${name}`),
    ),
    made,
  );
  return { title: `Edit ${name}`, content };
}
