// Questions offered on a page: "Ask more about these clusters" on a result, and "Ask a question" on a dataset.

import { get } from "./api.js";
import { h, replace } from "./dom.js";
import { mayAsk, questionForm } from "./question-form.js";

const OF_CLUSTERS = [["profile", "who is in each cluster"], ["explain", "what sets each cluster apart"]];
const OF_DATASETS = [["quantiles", "quantiles of columns"], ["summary", "means, spreads and correlations"], ["table", "a table of up to three columns"]];

// A card that stays hidden until the dataset's facts say which questions may be asked about these clusters. Of a
// job that left k open, `about` says which k is shown.
export function askMore(job, first, open) {
  const place = h("section", { class: "card stack", hidden: true });
  const heading = h("h2", {});
  let k = first;
  let form = null;
  const tell = () => replace(heading, `Ask more about these clusters${open ? ` (k = ${k})` : ""}`);
  get(`/v1/datasets/${job.dataset}`).then((facts) => {
    const offered = OF_CLUSTERS.filter(([kind]) => mayAsk(facts, kind));
    if (!offered.length || !facts.columns || facts.state !== "sealed") return;
    form = questionForm(facts, offered, () => ({ clusterings: [{ job: job.id, k }], rehearsal: job.rehearsal }));
    tell();
    replace(place, heading, form.element);
    place.hidden = false;
  }, () => {});
  return {
    element: place,
    about(next) {
      k = next;
      tell();
      form?.changed();
    },
  };
}

// A card for questions about a whole dataset; nothing where none may be asked.
export function askDataset(facts) {
  const offered = OF_DATASETS.filter(([kind]) => mayAsk(facts, kind));
  if (!offered.length || facts.state !== "sealed" || !["dense", "table"].includes(facts.kind)) return null;
  return h("section", { class: "card stack", id: "ask" }, h("h2", {}, "Ask a question"), questionForm(facts, offered, () => ({})).element);
}
