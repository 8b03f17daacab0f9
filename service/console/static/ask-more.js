// "Ask more about these clusters": a profile of some columns, or the columns that set each cluster apart.

import { get } from "./api.js";
import { h, replace } from "./dom.js";
import { checkbox, decimal, field, form, input, isEpsilon, radios, submit } from "./forms.js";
import { COUNT } from "./format.js";
import { offers } from "./offers.js";
import { explain } from "./widgets.js";

const KINDS = [["profile", "who is in each cluster"], ["explain", "what sets each cluster apart"]];

// A card that stays hidden until the dataset's facts say which questions may be asked about these k clusters.
export function askMore(job, k, open) {
  const place = h("section", { class: "card stack", hidden: true });
  get(`/v1/datasets/${job.dataset}`).then((facts) => {
    const offered = KINDS.filter(([kind]) => facts.kinds?.includes(kind));
    if (!offered.length || !facts.columns) return;
    replace(place, h("h2", {}, `Ask more about these clusters${open ? ` (k = ${k})` : ""}`), questions(job, k, facts, offered));
    place.hidden = false;
  }, () => {});
  return place;
}

function questions(job, k, facts, offered) {
  const kept = new Set((facts.table ?? []).filter(({ role }) => role === "keep").map(({ name }) => name));
  const boxes = facts.columns.map((name, i) => checkbox(`column-${i}`, name, { checked: kept.size ? kept.has(name) : i < 3, hint: kept.has(name) ? "not clustered on" : undefined }));
  const columns = h("fieldset", { class: "field" }, h("legend", {}, "Columns"), h("div", { class: "row" }, boxes));
  const send = submit("Ask");
  const forecast = h("p", { class: "muted", role: "status" });
  const made = form(
    {},
    [
      radios("kind", "Question", offered, offered[0][0]),
      columns,
      field("Epsilon", input("epsilon", { inputmode: "decimal", value: "0.1" }), { check: isEpsilon, hint: "Charged to the same budget as the clustering." }),
      forecast,
      send,
    ],
    async () => {
      location.hash = `#/jobs/${(await price.submit()).id}`;
    },
    () => price.stands(),
  );
  const request = () => {
    const given = new FormData(made);
    const chosen = facts.columns.filter((_, i) => given.has(`column-${i}`));
    const picks = Math.max(1, Math.min(3, facts.columns.length - 1));
    const asked = given.get("kind") === "explain" ? { options: { picks } } : chosen.length ? { columns: chosen } : {};
    return { dataset: job.dataset, kind: given.get("kind"), epsilon: decimal(given.get("epsilon")), clusterings: [{ job: job.id, k }], rehearsal: job.rehearsal, ...asked };
  };
  const price = offers(made, send, "Ask", {
    request,
    mistaken: () => replace(forecast, "Correct the marked field to see the price."),
    working: () => replace(forecast),
    priced: (plan) => replace(forecast, `${plan.fits ? "" : "This costs more than is left. "}Counts below about ${COUNT.format(plan.forecast.visible_count)} records are noise.`),
    failed: (error) => replace(forecast, explain(error)),
  });
  const changed = () => {
    columns.hidden = new FormData(made).get("kind") === "explain";
    if (price.isNew()) price.ask();
  };
  made.addEventListener("input", changed);
  made.addEventListener("change", changed);
  price.ask();
  return made;
}
