// Questions offered on a page: "Ask more about these clusters" on a result, and "Ask a question" on a
// dataset.

import { all, get } from "../api.js";
import { filters, setFilter } from "../address.js";
import { periodFields } from "../datasets/periods.js";
import { h, replace } from "../dom.js";
import { field, select } from "../forms.js";
import { keepForms } from "../kept.js";
import { explain } from "../widgets.js";
import { questionForm } from "./question-form.js";

const NOTHING = "You may not ask about these records. The dataset's curator can allow it.";

// The form for questions on a dataset about this number of clusterings; null if the service offers none.
async function formFor(dataset, clusterings, about, periods) {
  const { items } = await get(`/v1/kinds?dataset=${dataset}`);
  const offered = items.filter((each) => each.clusterings === clusterings);
  return offered.length ? questionForm(dataset, offered, about, periods) : null;
}

// Of a job that left k open, `about` says which k is shown. The records may be those of another dataset or of
// other periods, which the same clusters then divide: that is a comparison.
export function askMore(job, first, open) {
  const place = h("section", { class: "card stack", id: "ask", hidden: true });
  const heading = h("h2", {});
  let k = first;
  let form = null;
  const tell = () => replace(heading, `Ask more about these clusters${open ? ` (k = ${k})` : ""}`);
  const about = () => ({ clusterings: [{ job: job.id, k }], rehearsal: job.rehearsal });
  const show = async (whose) => {
    const dataset = whose.value;
    const made = await formFor(dataset, 1, about, await periodsOf(dataset, job));
    if (whose.value !== dataset || (!made && place.hidden)) return;
    form = made;
    const records = field("Records of", whose, {
      hint: "Those of another dataset are divided by the same clusters, and charged there: a comparison.",
    });
    records.hidden = whose.options.length < 2;
    replace(place, heading, records, form?.element ?? h("p", { class: "muted" }, NOTHING));
    place.hidden = false;
    keepForms(place);
  };
  const begin = async () => {
    const whose = await datasetsBeside(job.dataset);
    whose.addEventListener("change", () => {
      setFilter("records", whose.value === job.dataset ? "" : whose.value);
      show(whose).catch((error) => replace(place, heading, explain(error)));
    });
    await show(whose);
  };
  tell();
  begin().catch(() => {});
  return {
    element: place,
    about(next) {
      k = next;
      tell();
      form?.changed();
    },
  };
}

// A choice among a dataset and others that have rows; at first the one that the address names.
async function datasetsBeside(own) {
  const others = (await all("/v1/datasets")).filter(({ name, state }) => name !== own && state === "sealed");
  const made = select("records", [[own, `${own}, as clustered`], ...others.map(({ name }) => [name, name])]);
  const asked = filters().get("records");
  if (others.some(({ name }) => name === asked)) made.value = asked;
  return made;
}

// The periods whose records a question is about: at first those of the job.
async function periodsOf(dataset, job) {
  const fields = await periodFields(await get(`/v1/datasets/${dataset}`));
  const labels = job.periods?.map(({ label }) => label);
  if (dataset !== job.dataset || !labels || !fields.element) return fields;
  const own = { from: labels[0], to: labels.at(-1) };
  fields.choose(own);
  const isOwn = (/** @type {any} */ { periods }) => periods.from === own.from && periods.to === own.to;
  return { ...fields, read: () => (isOwn(fields.read()) ? { periods: labels } : fields.read()) };
}

// A card for questions about a whole dataset, or about some of its periods; hidden if the service offers none.
export async function askDataset(facts) {
  const place = h("section", { class: "card stack", id: "ask", hidden: true });
  const periods = await periodFields(facts);
  formFor(facts.name, 0, () => ({}), periods).then(
    (form) => {
      if (!form) return;
      replace(place, h("h2", {}, "Ask a question"), form.element);
      place.hidden = false;
      keepForms(place);
    },
    () => {},
  );
  return place;
}
