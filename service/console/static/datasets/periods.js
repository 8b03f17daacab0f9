// Periods of a dataset: on a line of time, with what is left of each; the next one, filled in from the last.
// Corrections of periods, and of a dataset without periods, which is one with a single period without a label.

import { all, post, remove } from "../api.js";
import { h, toast } from "../dom.js";
import { budgetFields, decimal, field, filled, form, input, isWhole, select, submit } from "../forms.js";
import { amount, COUNT, delta, moment, number } from "../format.js";
import { lookBeforeSeal, uploadReport, uploader } from "../pages/upload.js";
import { button, confirm, dialog, gauge, state, tag } from "../widgets.js";
import { alone } from "./proposals.js";

const path = (found) => `/v1/datasets/${found.name}/periods`;

// Whom a budget protects, by the unit of privacy.
export const UNITS = {
  record: "each single record; every period has a budget of its own",
  "person-in-period": "each person in one period; every period has a budget of its own",
  person: "each person in all periods, which share one budget",
};

// The label after another: the last number counts on, months and quarters within their year.
export function nextLabel(last) {
  const parts = /^(.*?)(\d+)(\D*)$/.exec(last);
  if (!parts) return "";
  const [, before, digits, after] = parts;
  const year = /^(\d{4})(\D+)$/.exec(before);
  const most = year && (/q$/i.test(year[2]) ? 4 : digits.length === 2 ? 12 : Infinity);
  const count = Number(digits);
  const padded = (value) => String(value).padStart(digits.length, "0");
  return most && count >= most
    ? `${Number(year[1]) + 1}${year[2]}${padded(1)}${after}`
    : `${before}${padded(count + 1)}${after}`;
}

export async function periods({ me, reload }, found) {
  const list = await all(path(found));
  const curator = me.role === "curator";
  const draft = list.find((each) => each.state === "draft" || each.correction);
  return [
    h(
      "section",
      { class: "card stack" },
      h(
        "div",
        { class: "row apart" },
        h("h2", {}, "Periods"),
        curator &&
          !draft &&
          found.state !== "retired" &&
          button(
            list.length ? "Add the next period" : "Add the first period",
            () => add(found, list, reload),
            "primary",
          ),
      ),
      h("p", { class: "muted" }, `Budgets protect ${UNITS[found.unit]}.`),
      list.length
        ? h(
            "ol",
            { class: "timeline" },
            list.map((each) => point(found, each, curator, reload)),
          )
        : h("p", { class: "muted" }, "None yet. Each has a label, such as 2026-01, and rows of its own."),
      found.lost_in_all &&
        list.length > 1 &&
        h(
          "p",
          { class: "small muted", id: "lost-in-all" },
          `Somebody with rows in all of them has lost ${amount(found.lost_in_all)} and ` +
            `${delta(found.lost_in_all.delta)} so far.`,
        ),
    ),
    curator && draft && draftCard(found, draft, reload),
  ];
}

function point(found, period, curator, reload) {
  const held = period.cap ?? period.budget;
  const name = period.cap ? "Your cap" : "Budget";
  return h(
    "li",
    { class: `stack tight ${period.state}` },
    h(
      "div",
      { class: "row apart" },
      h("div", { class: "row" }, h("h3", {}, period.label), period.state !== "sealed" && state(period.state)),
      curator &&
        period.state === "sealed" &&
        h(
          "div",
          { class: "row" },
          period.budget && button("Raise", () => raise(found, period, reload), "small quiet"),
          !period.correction && button("Correct", () => correct(found, period, reload), "small quiet"),
        ),
    ),
    h(
      "p",
      { class: "small muted" },
      `about ${COUNT.format(period.size)} records`,
      period.sealed_at && [", sealed ", moment(period.sealed_at)],
      period.version > 1 && [" ", tag(`version ${period.version}`)],
    ),
    held && gauge(held, { label: `${name} in ${period.label}` }),
    curator &&
      period.state === "sealed" &&
      period.upload &&
      h("details", {}, h("summary", {}, "The upload"), uploadReport(period.upload)),
  );
}

export const rangeInWords = (range) =>
  range.from === range.to ? range.from : `${range.from} to ${range.to}`;
const placeOf = (found, period) =>
  period.label ? `${path(found)}/${period.label}` : `/v1/datasets/${found.name}`;
const titleOf = (found, period) => period.label || found.name;

// A draft is uploaded, checked and sealed as a dataset without periods is.
export function draftCard(found, period, reload) {
  const place = h("div", { class: "stack" });
  const correction = period.correction;
  const report = correction ? correction.upload : period.upload;
  const target = { ...found, upload: report, period: period.label, correction };
  const rows = correction ? "the corrected rows" : "the rows";
  return h(
    "section",
    { class: "card stack" },
    h(
      "div",
      { class: "row apart" },
      h("h2", {}, `${titleOf(found, period)}: ${report ? "check before you seal" : `upload ${rows}`}`),
      button(
        correction ? "Discard this correction" : "Discard this period",
        () => discard(found, period, reload),
        "small quiet",
      ),
    ),
    correction &&
      h(
        "p",
        { class: "muted" },
        "When you seal them, the rows that are there now are deleted. What was charged stays charged. " +
          "Everybody sees that there was a correction and when, and nothing else.",
      ),
    report && lookBeforeSeal(target, reload),
    report && h("h3", {}, "Upload other rows"),
    uploader(target, reload, place),
    place,
  );
}

function add(found, list, reload) {
  const last = list.at(-1);
  const declared = last?.budget?.declared ?? found.budget.declared;
  dialog(`Add a period to ${found.name}`, (close) =>
    form(
      {},
      [
        field("Label", input("label", { value: last ? nextLabel(last.label) : "" }), {
          hint: "Public. Periods are ordered by their labels as text, so write 2026-02, not 2026-2.",
          check: filled("Enter a label, for example 2026-01."),
        }),
        field("Size", input("size", { inputmode: "numeric", value: String(last?.size ?? found.size) }), {
          hint: "About how many records it has. Public, so round it.",
          check: isWhole("Enter about how many records there are."),
        }),
        found.unit !== "person" &&
          budgetFields({
            epsilon: declared.epsilon,
            delta: declared.delta,
            hintEpsilon: "The most that jobs on this period may spend.",
          }),
        h(
          "div",
          { class: "row end" },
          h("button", { type: "button", on: { click: close } }, "Cancel"),
          submit("Add the period"),
        ),
      ],
      async (data) => {
        const budget = { epsilon: decimal(data.get("epsilon")), delta: decimal(data.get("delta")) };
        const made = await post(path(found), {
          label: data.get("label").trim(),
          size: Number(data.get("size")),
          ...(found.unit === "person" ? {} : { budget }),
        });
        close();
        toast(`${made.label} is added. Upload its rows next.`);
        await reload();
      },
    ),
  );
}

function raise(found, period, reload) {
  const { epsilon, delta: present } = period.budget.declared;
  dialog(`Raise the budget of ${period.label}`, (close) =>
    form(
      {},
      [
        h(
          "p",
          {},
          `Now ε ${number(epsilon)} and ${delta(present)} in total. The total can only be raised, and raising ` +
            "it weakens the protection of the people in this period.",
        ),
        budgetFields({ epsilon, delta: present, hintEpsilon: "The new total." }),
        h(
          "div",
          { class: "row end" },
          h("button", { type: "button", on: { click: close } }, "Cancel"),
          submit("Raise the budget"),
        ),
      ],
      async (data) => {
        const total = { epsilon: decimal(data.get("epsilon")), delta: decimal(data.get("delta")) };
        const proposal = { dataset: found.name, about: "total", period: period.label, ...total };
        await alone(() => post(`${path(found)}/${period.label}/budget`, total), proposal, close);
        close();
        toast("The budget is raised. This is recorded in the audit log.");
        await reload();
      },
    ),
  );
}

export function correct(found, period, reload) {
  confirm(
    `Correct ${titleOf(found, period)}?`,
    "Upload a corrected file next. Nothing changes until you seal it; its rows then replace those that are there.",
    "Begin a correction",
    async () => {
      await post(`${placeOf(found, period)}/correction`, {});
      await reload();
    },
  );
}

function discard(found, period, reload) {
  const what = period.correction ? "The draft of this correction" : "The draft of this period";
  confirm(
    `Discard the draft of ${titleOf(found, period)}?`,
    `${what}, its rows and the report on them are deleted.`,
    "Discard it",
    async () => {
      await remove(period.label ? placeOf(found, period) : `${placeOf(found, period)}/data`);
      toast(`The draft of ${titleOf(found, period)} is discarded.`);
      await reload();
    },
  );
}

// Fields that choose the periods of a job, for a form; nothing where there are none.
// `choose(range)` sets them.
export async function periodFields(found) {
  const sealed = found.unit ? (await all(path(found))).filter((each) => each.state === "sealed") : [];
  if (!sealed.length) return { element: null, read: () => ({}), choose() {} };
  const labels = sealed.map(({ label }) => [label, label]);
  const from = select("first_period", labels);
  const to = select("last_period", labels);
  to.value = labels.at(-1)?.[0] ?? "";
  const element = h(
    "div",
    { class: "columns" },
    field("First period", from),
    field("Last period", to, {
      hint: "The job reads all periods from the first to the last.",
      check: (last) => (last < from.value ? "Choose one that is not before the first." : ""),
    }),
  );
  return {
    element,
    read: () => ({ periods: { from: from.value, to: to.value } }),
    choose(range) {
      [from.value, to.value] = [range.from, range.to];
    },
  };
}
