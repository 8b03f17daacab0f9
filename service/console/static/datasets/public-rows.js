// Public rows: attached by the curator for jobs to learn from.

import { remove, upload } from "../api.js";
import { h, toast } from "../dom.js";
import { checkbox, field, filled, form, submit } from "../forms.js";
import { moment, plural } from "../format.js";
import { button, confirm } from "../widgets.js";

// Jobs on fewer columns make no use of them.
const MANY_COLUMNS = 64;
const path = (name) => `/v1/datasets/${name}/public-rows`;

// How many there are, as a fact about a dataset.
export function publicRows({ public_rows: rows }) {
  return rows && `${plural(rows.rows, "row")} for jobs to learn from, attached ${moment(rows.set_at)}`;
}

// The curator's card on the page of a dataset.
export function publicRowsCard(found, reload) {
  if (found.state !== "sealed" || found.kind !== "dense" || found.dimension <= MANY_COLUMNS) return null;
  const file = h("input", { type: "file", name: "file" });
  const made = form(
    { "data-kept": "no" },
    [
      field("File", file, {
        hint: "Rows with the same columns, in any format that an upload takes; at most 10,000.",
        check: filled("Choose a file."),
      }),
      checkbox("public", "These rows are public, and of none of the people in this dataset", {
        hint: "Results depend on them without noise: the guarantee does not cover them.",
      }),
      h("div", { class: "row" }, submit("Attach the rows")),
    ],
    async (data) => {
      const { public_rows: rows } = await upload(
        `${path(found.name)}?public=${data.get("public") !== null}`,
        data.get("file"),
        () => {},
      ).done;
      toast(`${plural(rows.rows, "row")} attached. This is recorded in the audit log.`);
      await reload();
    },
  );
  return h(
    "section",
    { class: "card stack", id: "public-rows" },
    h("h2", {}, "Public rows"),
    h(
      "p",
      { class: "muted" },
      "From a few hundred public rows of the same kind, jobs learn in which directions " +
        "records vary and spend their budget elsewhere. Each job checks in private whether its " +
        "records resemble them. Earlier jobs keep what they were planned with.",
    ),
    found.public_rows &&
      h(
        "div",
        { class: "row apart" },
        h("p", {}, publicRows(found)),
        button("Detach", () => detach(found, reload), "small"),
      ),
    made,
  );
}

function detach(found, reload) {
  confirm(
    "Detach the public rows?",
    "Jobs that are planned from now on do without. Earlier jobs keep them.",
    "Detach",
    async () => {
      await remove(path(found.name));
      toast("New jobs do without public rows.");
      await reload();
    },
  );
}
