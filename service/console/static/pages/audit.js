// The audit log: every act of a curator, in sentences.

import { all, pages } from "../api.js";
import { h, replace } from "../dom.js";
import { field, select } from "../forms.js";
import { delta, moment, number } from "../format.js";
import { growing, table } from "../widgets.js";

const SENTENCES = {
  "create-dataset": (d) => `created the dataset with ε ${number(d.epsilon)} and ${delta(d.delta)}`,
  "upload": (d) => `uploaded rows to a draft (${d.format})`,
  "edit-draft": (d) => `changed ${(d.changed ?? []).join(", ") || "the description"} of the draft${d.revised_after_a_look?.length ? `; changed after a look at the rows: ${d.revised_after_a_look.join(", ")}` : ""}`,
  "throw-away-rows": () => "threw the rows of the draft away",
  "delete-old-rows": () => "deleted rows that nobody sealed",
  "discard-draft": (d) => `discarded the draft ${d.name}${d.looked_at_rows ? " after a look at its rows" : ""}`,
  "seal": (d) => `sealed the dataset${d.revised_after_a_look?.length ? `; changed after a look at the rows: ${d.revised_after_a_look.join(", ")}` : ""}`,
  "raise-budget": (d) => `raised the budget to ε ${number(d.epsilon)} and ${delta(d.delta)}`,
  "retire": () => "retired the dataset and deleted its rows",
  "grant": (d) => `granted ${d.analyst} a cap of ε ${number(d.epsilon)} and ${delta(d.delta)}`,
  "revoke-grant": (d) => `withdrew the grant of ${d.analyst}`,
  "create-principal": (d) => `created the ${d.role} ${d.principal}`,
  "issue-key": (d) => `issued the key ${d.key} to ${d.principal}`,
  "revoke-key": (d) => `revoked the key ${d.key} of ${d.principal}`,
  "end-session": (d) => `ended the session ${d.session_id} of ${d.principal}`,
  "disable-principal": (d) => `disabled the account of ${d.principal}`,
  "set-working-bounds": (d) => `set working bounds: ${d.columns.map((each) => `${each.column} from ${each.low} to ${each.high} (${each.origin})`).join(", ")}`,
  "set-public-rows": (d) => `attached ${d.rows} public rows`,
  "remove-public-rows": () => "detached the public rows",
  "remove-working-bounds": () => "went back to the declared bounds",
  "put-sites": (d) => `stored the public sites ${d.sites}`,
};

function sentence(event) {
  const known = SENTENCES[event.action];
  return known ? known(event.details) : `${event.action} ${Object.entries(event.details).map(([k, v]) => `${k} ${v}`).join(", ")}`;
}

export function auditTable(items, { dataset = true } = {}) {
  const headings = [{ name: "When" }, { name: "Who" }, { name: "What" }, dataset && { name: "Dataset" }].filter(Boolean);
  const where = (event) => (event.dataset ? h("a", { href: `#/datasets/${event.dataset}` }, event.dataset) : "–");
  const rows = items.map((event) => [h("span", { class: "nowrap" }, moment(event.at)), event.actor, sentence(event), ...(dataset ? [where(event)] : [])]);
  return table(headings, rows, { label: "Audit log" });
}

export async function audit() {
  const owned = await all("/v1/datasets");
  const place = h("div", {});
  const chosen = select("dataset", [["", "All datasets, people and keys"], ...owned.map((each) => [each.name, each.name])]);
  const show = async () => {
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
    h("div", { class: "head" }, h("div", { class: "stack tight" }, h("h1", {}, "Audit"), h("p", { class: "muted" }, "Everything that curators did, kept permanently.")), h("div", { class: "grow" }, field("Show", chosen))),
    h("div", { class: "card" }, place),
  );
  return { title: "Audit", content };
}
