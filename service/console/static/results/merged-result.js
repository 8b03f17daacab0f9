// The result of a job of a single k: its clusters can be merged into fewer, by their centres and sizes.

import { get } from "../api.js";
import { announce, h, replace } from "../dom.js";
import { plural } from "../format.js";
import { button, explain } from "../widgets.js";
import { columnChoice, resultView } from "./result.js";

const MOST_MERGED = 64; // that the service merges

const canMerge = ({ centres, sizes, noise, objective }, { inputs }) =>
  centres.length > 1 &&
  centres.length <= MOST_MERGED &&
  sizes &&
  noise?.size &&
  objective === "means" &&
  !inputs?.sites;

// `chosen` is told which k is shown.
export function singleResultView(job, first, receipt, chosen) {
  if (!canMerge(first, receipt)) return resultView(job, first, receipt);
  const most = first.centres.length;
  const choice = columnChoice(first, receipt);
  const parts = h("div", { class: "stack loose" }, resultView(job, first, receipt, choice));
  const control = h("input", {
    type: "range",
    id: "k",
    min: "1",
    max: String(most),
    step: "1",
    props: { value: String(most) },
  });
  const count = h("output", { class: "big", for: "k" }, String(most));
  const choose = async (k) => {
    control.value = String(k);
    count.textContent = String(k);
    control.setAttribute("aria-valuetext", plural(k, "cluster"));
    try {
      const result = k === most ? first : await get(`/v1/jobs/${job.id}/result?k=${k}`);
      if (Number(control.value) !== k) return;
      replace(parts, resultView(job, result, receipt, choice));
      announce(k === most ? `${most} clusters, as released.` : `${most} clusters merged into ${k}.`);
      chosen?.(k);
    } catch (error) {
      if (Number(control.value) === k) replace(parts, explain(error));
    }
  };
  control.addEventListener("input", () => choose(Number(control.value)));
  return [
    h(
      "section",
      { class: "card stack", id: "choose-k" },
      h("h2", {}, "Fewer clusters"),
      h(
        "p",
        { class: "small muted" },
        `Free: the ${most} released clusters are merged by their centres and sizes. A job ` +
          "that leaves k open gives better answers for other k, and says how sure they are.",
      ),
      h(
        "div",
        { class: "knob" },
        h("label", { for: "k" }, "Clusters (k)"),
        count,
        control,
        button(`As released: ${most}`, () => choose(most), "small"),
      ),
    ),
    parts,
  ];
}
