// Working bounds: narrower than the declared ones, typed by the curator or released by a job.

import { get, put, remove } from "../api.js";
import { h, toast } from "../dom.js";
import { checkbox, form, guard, input, isNumber, numberOf, optional, submit } from "../forms.js";
import { number } from "../format.js";
import { boundedColumns } from "../jobs/question-form.js";
import { button, confirm, dialog, table } from "../widgets.js";

const MOST_EDITED = 50;
const text = (value) => (typeof value === "number" ? number(value, 7) : String(value));
const path = (name) => `/v1/datasets/${name}/working-bounds`;

// What the service is sent for a column that keeps its working bounds.
const kept = ({ column, low, high, job }) => (job ? { column, job } : { column, low, high });

export function origin({ origin: words, job }) {
  return job ? ["released by job ", h("a", { href: `#/jobs/${job}` }, job.slice(0, 8))] : words;
}

// Which columns have working bounds, as a fact about a dataset.
export function workingList({ working_bounds: working }) {
  return (
    working &&
    h(
      "ul",
      { class: "plain" },
      working.columns.map((each) =>
        h(
          "li",
          {},
          h("code", {}, each.column),
          ` from ${text(each.low)} to ${text(each.high)}, `,
          origin(each),
        ),
      ),
    )
  );
}

// The curator's card on the page of a dataset.
export function workingCard(found, reload) {
  const columns = boundedColumns(found);
  if (found.state !== "sealed" || !columns.length || columns.length > MOST_EDITED) return null;
  const rows = (found.working_bounds?.columns ?? []).map((each) => [
    h("code", {}, each.column),
    text(each.low),
    text(each.high),
    origin(each),
  ]);
  return h(
    "section",
    { class: "card stack", id: "working-bounds" },
    h(
      "div",
      { class: "row apart" },
      h("h2", {}, "Working bounds"),
      button("Change", () => edit(found, columns, reload), "small"),
    ),
    h(
      "p",
      { class: "muted" },
      "Bounds that are too wide waste accuracy. Jobs that are planned from now on clip rows " +
        "to narrower ones; nothing is uploaded again, and earlier jobs keep theirs. Ask for " +
        "quantiles to find bounds in private.",
    ),
    rows.length > 0 &&
      table(
        [
          { name: "Column" },
          { name: "Low", right: true },
          { name: "High", right: true },
          { name: "Where from" },
        ],
        rows,
        { label: "Working bounds" },
      ),
    rows.length > 0 &&
      h(
        "div",
        {},
        button("Use the declared bounds again", () => back(found, reload), "small"),
      ),
  );
}

function back(found, reload) {
  confirm(
    "Use the declared bounds again?",
    "Jobs that are planned from now on use them. Earlier jobs keep theirs.",
    "Use the declared bounds",
    async () => {
      await remove(path(found.name));
      toast("New jobs use the declared bounds.");
      await reload();
    },
  );
}

function edit(found, columns, reload) {
  const present = new Map((found.working_bounds?.columns ?? []).map((each) => [each.column, each]));
  const bound = (column, key, words) => {
    const value = present.get(column.name)?.[key];
    const control = input(key, {
      value: value === undefined ? "" : String(value),
      placeholder: String(column[key]),
      "aria-label": `${words} of ${column.name}`,
    });
    return h(
      "td",
      { "data-label": words },
      control,
      column.kind === "number" && guard(control, optional(isNumber("Enter a number."))),
    );
  };
  const lines = columns.map((column) =>
    h(
      "tr",
      {},
      h("td", { "data-label": "Column" }, h("code", {}, column.name)),
      bound(column, "low", "Low"),
      bound(column, "high", "High"),
    ),
  );
  dialog(`Working bounds of ${found.name}`, (close) =>
    form(
      {},
      [
        h(
          "p",
          {},
          "Type only what you know without looking at the rows. A column whose fields are " +
            "empty has its declared bounds.",
        ),
        h(
          "table",
          { class: "fold" },
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ["Column", "Low", "High"].map((name) => h("th", { scope: "col" }, name)),
            ),
          ),
          h("tbody", {}, lines),
        ),
        h(
          "div",
          { class: "row end" },
          h("button", { type: "button", on: { click: close } }, "Cancel"),
          submit("Use these bounds"),
        ),
      ],
      async (data) => {
        const [lows, highs] = [data.getAll("low"), data.getAll("high")];
        const typed = columns.flatMap((column, i) => {
          const now = present.get(column.name);
          const read = (words, declared) =>
            words.trim() === "" ? declared : column.kind === "number" ? numberOf(words) : words.trim();
          if (lows[i].trim() === "" && highs[i].trim() === "") return [];
          const [low, high] = [read(lows[i], column.low), read(highs[i], column.high)];
          return [
            now && now.low === low && now.high === high ? kept(now) : { column: column.name, low, high },
          ];
        });
        if (typed.length) await put(path(found.name), { columns: typed });
        else if (present.size) await remove(path(found.name));
        close();
        toast("New jobs use these bounds. This is recorded in the audit log.");
        await reload();
      },
    ),
  );
}

// On the page of an answer that proposes bounds, for the dataset's curator: "Use these as bounds".
export function useAsBounds(job, { bounds }) {
  if (!bounds.length) return null;
  return button(
    "Use these as bounds",
    async () => {
      const found = await get(`/v1/datasets/${job.dataset}`);
      dialog(`Use these as bounds of ${job.dataset}`, (close) =>
        form(
          {},
          [
            h(
              "p",
              {},
              "Rows of jobs that are planned from now on are clipped to these bounds. " +
                "Earlier jobs keep theirs, and everybody sees which job released them.",
            ),
            bounds.map(({ column, low, high }, i) =>
              checkbox(`column-${i}`, column, { checked: true, hint: `from ${text(low)} to ${text(high)}` }),
            ),
            h(
              "div",
              { class: "row end" },
              h("button", { type: "button", on: { click: close } }, "Cancel"),
              submit("Use these bounds"),
            ),
          ],
          async (data) => {
            const named = bounds.filter((_, i) => data.has(`column-${i}`)).map(({ column }) => column);
            const others = (found.working_bounds?.columns ?? [])
              .filter(({ column }) => !named.includes(column))
              .map(kept);
            await put(path(job.dataset), {
              columns: [...others, ...named.map((column) => ({ column, job: job.id }))],
            });
            close();
            toast("New jobs use these bounds. This is recorded in the audit log.");
            location.hash = `#/datasets/${job.dataset}`;
          },
        ),
      );
    },
    "small",
  );
}
