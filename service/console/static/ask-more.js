// "Ask more about these clusters": a profile of some columns, or the columns that set each cluster apart.

import { get, post } from "./api.js";
import { h, replace } from "./dom.js";
import { checkbox, decimal, field, form, input, isEpsilon, radios, submit } from "./forms.js";
import { amount, COUNT } from "./format.js";
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
  const epsilon = input("epsilon", { inputmode: "decimal", value: "0.1" });
  const price = h("p", { class: "muted", role: "status" });
  const body = (given) => {
    const kind = given.get("kind");
    const chosen = facts.columns.filter((_, i) => given.has(`column-${i}`));
    const asked = { dataset: job.dataset, kind, epsilon: decimal(given.get("epsilon")), clusterings: [{ job: job.id, k }], rehearsal: job.rehearsal };
    return kind === "profile" && chosen.length ? { ...asked, columns: chosen } : kind === "explain" ? { ...asked, options: { picks: Math.max(1, Math.min(3, facts.columns.length - 1)) } } : asked;
  };
  const made = form(
    {},
    [
      radios("kind", "Question", offered, offered[0][0]),
      h("fieldset", { class: "field" }, h("legend", {}, "Columns"), h("div", { class: "row" }, boxes)),
      field("Epsilon", epsilon, { check: isEpsilon, hint: "Charged to the same budget as the clustering." }),
      price,
      submit("Ask"),
    ],
    async (given) => {
      const planned = await post("/v1/plans", body(given));
      const asked = await post("/v1/jobs", { ...body(given), quote: planned.quote }, { idempotencyKey: crypto.randomUUID() });
      location.hash = `#/jobs/${asked.id}`;
    },
  );
  let latest = 0;
  const quote = async () => {
    const own = (latest += 1);
    const columns = made.querySelector("fieldset:nth-of-type(2)");
    columns.hidden = new FormData(made).get("kind") === "explain";
    if (isEpsilon(epsilon.value)) return;
    try {
      const planned = await post("/v1/plans", body(new FormData(made)));
      if (own !== latest) return;
      replace(price, `${job.rehearsal ? "Free, a rehearsal" : `Costs ${amount(planned.cost)}`}${planned.fits ? "" : ", which is more than is left"}. Counts below about ${COUNT.format(planned.forecast.visible_count)} records are noise.`);
    } catch (error) {
      if (own === latest) replace(price, explain(error));
    }
  };
  made.addEventListener("change", quote);
  quote();
  return made;
}
