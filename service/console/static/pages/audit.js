// The audit log: every act of a curator or operator, in sentences.

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

export async function audit({ me }) {
  const owned = me.role === "operator" ? [] : await all("/v1/datasets");
  const place = h("div", {});
  const chosen = select("dataset", [
    ["", "All datasets, people and keys"],
    ...owned.map((each) => [each.name, each.name]),
  ]);
  chosen.value = filters().get("dataset") ?? "";
  const show = async () => {
    setFilter("dataset", chosen.value);
    const filter = chosen.value ? `?dataset=${chosen.value}` : "";
    const list = growing(pages(`/v1/audit${filter}`, 50), (items) => auditTable(items));
    await list.more();
    replace(place, list.place);
  };
  chosen.addEventListener("change", show);
  await show();
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
        h("p", { class: "muted" }, "Everything that curators and operators did, kept permanently."),
      ),
      h("div", { class: "grow" }, field("Show", chosen)),
    ),
    h("div", { class: "card" }, place),
  );
  return { title: "Audit", content };
}
