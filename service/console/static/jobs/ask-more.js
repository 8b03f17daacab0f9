// Questions offered on a page: "Ask more about these clusters" on a result, and "Ask a question" on a
// dataset.

import { get } from "../api.js";
import { periodFields } from "../datasets/periods.js";
import { h, replace } from "../dom.js";
import { keepForms } from "../kept.js";
import { questionForm } from "./question-form.js";

// A card that stays hidden unless the service offers questions about this number of clusterings.
function card(dataset, clusterings, heading, about, periods = null) {
  const place = h("section", { class: "card stack", id: "ask", hidden: true });
  const made = { element: place, form: null };
  get(`/v1/kinds?dataset=${dataset}`).then(
    ({ items }) => {
      const offered = items.filter((each) => each.clusterings === clusterings);
      if (!offered.length) return;
      made.form = questionForm(dataset, offered, about, periods);
      replace(place, heading, made.form.element);
      place.hidden = false;
      keepForms(place);
    },
    () => {},
  );
  return made;
}

// Of a job that left k open, `about` says which k is shown.
export function askMore(job, first, open) {
  const heading = h("h2", {});
  let k = first;
  const tell = () => replace(heading, `Ask more about these clusters${open ? ` (k = ${k})` : ""}`);
  tell();
  const made = card(job.dataset, 1, heading, () => ({
    clusterings: [{ job: job.id, k }],
    ...(job.periods ? { periods: job.periods.map(({ label }) => label) } : {}),
    rehearsal: job.rehearsal,
  }));
  return {
    element: made.element,
    about(next) {
      k = next;
      tell();
      made.form?.changed();
    },
  };
}

// A card for questions about a whole dataset, or about some of its periods.
export async function askDataset(facts) {
  const periods = await periodFields(facts);
  return card(facts.name, 0, h("h2", {}, "Ask a question"), () => ({}), periods).element;
}
