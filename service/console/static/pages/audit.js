// The audit log: every act of a curator or operator, and every reading, in sentences.

import { all, pages } from "../api.js";
import { filters, setFilter } from "../address.js";
import { h, replace } from "../dom.js";
import { field, select } from "../forms.js";
import { moment, withPowers } from "../format.js";
import { growing, table } from "../widgets.js";

export function auditTable(items, { dataset = true } = {}) {
  const headings = [
    { name: "When" },
    { name: "Who" },
    { name: "What" },
    dataset && { name: "Dataset" },
  ].filter(Boolean);
  const where = (event) =>
    event.dataset ? h("a", { href: `#/datasets/${event.dataset}` }, event.dataset) : "–";
  const rows = items.map((event) => [
    h("span", { class: "nowrap" }, moment(event.at)),
    event.actor,
    withPowers(event.words),
    ...(dataset ? [where(event)] : []),
  ]);
  return table(headings, rows, { label: "Audit log" });
}

/** Whether to show acts or accesses, as the address says. */
function recordSelect() {
  const chosen = select("record", [
    ["acts", "What was done"],
    ["access", "Who read what"],
  ]);
  chosen.value = filters().get("record") ?? "acts";
  return chosen;
}

/** Events of a dataset, or of all, with the choice between acts and accesses. */
export async function auditList(dataset) {
  const record = recordSelect();
  const place = h("div", {});
  const show = async () => {
    setFilter("record", record.value === "acts" ? "" : record.value);
    const filter = dataset() ? `&dataset=${dataset()}` : "";
    const list = growing(pages(`/v1/audit?record=${record.value}${filter}`, 50), (items) =>
      auditTable(items, { dataset: !dataset() }),
    );
    await list.more();
    replace(place, list.place);
  };
  record.addEventListener("change", show);
  await show();
  return { choice: field("Record", record), place, show };
}

export async function audit({ me }) {
  const owned = me.role === "operator" ? [] : await all("/v1/datasets");
  const chosen = select("dataset", [
    ["", "All datasets, people and keys"],
    ...owned.map((each) => [each.name, each.name]),
  ]);
  chosen.value = filters().get("dataset") ?? "";
  const list = await auditList(() => chosen.value);
  chosen.addEventListener("change", () => {
    setFilter("dataset", chosen.value);
    list.show();
  });
  const content = h(
    "div",
    { class: "stack loose" },
    h(
      "div",
      { class: "head" },
      h(
        "div",
        { class: "stack tight" },
        h("h1", {}, "Audit"),
        h("p", { class: "muted" }, "What curators and operators did, and who read what, kept permanently."),
      ),
      h("div", { class: "grow" }, field("Show", chosen)),
      list.choice,
    ),
    h("div", { class: "card" }, list.place),
  );
  return { title: "Audit", content };
}
