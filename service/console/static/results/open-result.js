// The result of a job that left k open: a slider for k that moves everything at once.

import { get } from "../api.js";
import { cloudMap } from "./cloud.js";
import { filters, setFilter } from "../address.js";
import { announce, h, replace } from "../dom.js";
import { elbow, mergeTree } from "./elbow.js";
import { estimateWords, number, percent, sentence } from "../format.js";
import { coordinateWords } from "./geometry.js";
import { button, explain, notice } from "../widgets.js";
import { matched } from "../pages/compare.js";
import { columnChoice, columnsOf, resultView } from "./result.js";

const MOST_ROWS = 1500;
const MOST_VALUES = 200_000; // what the service sends as text

// `chosen` is told which k is shown.
export function openResultView(job, first, receipt, chosen) {
  const { range } = first;
  const answers = new Map([[first.centres.length, Promise.resolve(first)]]);
  const answer = (k) => {
    if (!answers.has(k)) {
      const asked = get(`/v1/jobs/${job.id}/result?k=${k}`);
      asked.catch(() => answers.delete(k)); // so that it can be asked for again
      answers.set(k, asked);
    }
    return answers.get(k);
  };

  const choice = columnChoice(first, receipt);
  const lengths = receipt.axes.units;
  const parts = h("div", { class: "stack loose" });
  const map = h("div", {});
  const knob = slider(range, (k) => choose(k));
  const pictures = [elbow(range, (k) => choose(k)), mergeTree(range, (k) => choose(k))];
  let cloud = null;
  let colours = null; // of the clusters shown last: those that stay keep theirs
  let wanted = range.suggested;

  const show = (result) => {
    const shown = { ...result, hues: coloured(result.centres, colours, lengths) };
    colours = shown;
    for (const each of pictures) each.show(result.centres.length);
    knob.tell(result);
    cloud?.show(shown);
    replace(parts, resultView(job, shown, receipt, choice));
    chosen?.(result.centres.length);
  };
  const choose = async (k) => {
    wanted = k;
    knob.set(k);
    setFilter("k", k === range.suggested ? "" : String(k));
    try {
      const result = await answer(k);
      if (wanted !== k) return;
      show(result);
      announce(`${k} clusters explain ${percent(result.level.explained)} of the variance.`);
      for (const next of [k + 1, k - 1])
        if (next >= range.from && next <= range.to) answer(next).catch(() => {});
    } catch (error) {
      if (wanted === k) replace(parts, explain(error));
    }
  };
  const drawMap = async () => {
    const columns = columnsOf(first);
    const count = Math.min(MOST_ROWS, range.made_up_rows, Math.floor(MOST_VALUES / columns.length));
    try {
      const { rows } = await get(`/v1/jobs/${job.id}/sample?n=${count}&coordinates=true`);
      cloud = cloudMap({
        columns,
        lengths,
        rows,
        words: coordinateWords(receipt.axes),
      });
      replace(map, cloud.element);
      cloud.show(colours);
    } catch (error) {
      replace(map, explain(error));
    }
  };
  show(first);
  drawMap();
  const asked = Number(filters().get("k"));
  if (asked >= range.from && asked <= range.to && Number.isInteger(asked)) choose(asked);
  return [
    h(
      "section",
      { class: "card stack", id: "choose-k" },
      h("h2", {}, "How many clusters?"),
      h("p", { id: "reason" }, "Suggested ", sentence(range.reason).replace(/^K/, "k")),
      range.heavy_tailed &&
        notice(
          "warn",
          h(
            "p",
            { id: "heavy-tails" },
            sentence(
              range.warning ??
                "Some records may lie far from all others: losses are of the records within " +
                  `${number(range.reach, 2)} of a fine cluster`,
            ),
          ),
        ),
      knob.element,
      h(
        "div",
        { class: "plots" },
        h(
          "figure",
          { class: "stack tight flat", id: "elbow" },
          h(
            "figcaption",
            {},
            h(
              "h3",
              {},
              range.heavy_tailed
                ? `Loss for each k, of records within ${number(range.reach, 2)} of a fine cluster`
                : "Loss for each k",
            ),
          ),
          pictures[0].element,
          h(
            "p",
            { class: "small muted" },
            "The share of the variance that the clusters leave unexplained. Lines: 95% " +
              "intervals. The ring is the suggested k. Click a point to show it.",
          ),
        ),
        h(
          "figure",
          { class: "stack tight flat", id: "tree" },
          h("figcaption", {}, h("h3", {}, "Tree of merges")),
          pictures[1].element,
          h(
            "p",
            { class: "small muted" },
            "Fine clusters, joined pair by pair. The higher a join, the more variance it " +
              "leaves unexplained. Click at a height to cut the tree there; k-means then moves " +
              "the borders a little.",
          ),
        ),
      ),
    ),
    map,
    parts,
  ];
}

// Numbers of colours: a cluster keeps that of the nearest one shown before, as far as each is used once.
function coloured(centres, before, lengths) {
  if (!before) return centres.map((_, i) => i);
  const hues = [];
  for (const [, old, now] of matched(before.centres, centres, lengths)) hues[now] = before.hues[old];
  const free = [...centres.keys(), ...before.hues]
    .sort((a, b) => a - b)
    .filter((each, i, all) => !hues.includes(each) && all.indexOf(each) === i);
  return Array.from(centres, (_, i) => hues[i] ?? free.shift());
}

// How much of the variance the clusters explain, with its interval, as far as noise lets it be said.
function explainedWords({ k, loss, explained }) {
  if (k === 1) return "One cluster explains none of the variance.";
  const whole = loss.value / (1 - explained); // the loss of one cluster
  const ends = [loss.high, loss.low].map((each) => Math.min(1, Math.max(0, 1 - each / whole)));
  if (!(whole > 0) || (ends[0] === 0 && ends[1] === 1))
    return `Noise hides how much of the variance ${k} clusters explain.`;
  const { value, interval } = estimateWords(explained, ends, { words: percent, least: 0 });
  return `${k} clusters explain ${value} of the variance${interval && ` (95% interval: ${interval})`}.`;
}

function slider({ from, to, suggested }, choose) {
  const control = h("input", {
    type: "range",
    id: "k",
    min: String(from),
    max: String(to),
    step: "1",
    props: { value: String(suggested) },
  });
  const words = h("p", { class: "number", id: "k-in-words" });
  const count = h("output", { class: "big", for: "k" });
  control.addEventListener("input", () => choose(Number(control.value)));
  const set = (k) => {
    control.value = String(k);
    count.textContent = String(k);
    control.setAttribute(
      "aria-valuetext",
      `${k} ${k === 1 ? "cluster" : "clusters"}${k === suggested ? ", suggested" : ""}`,
    );
  };
  set(suggested);
  return {
    element: h(
      "div",
      { class: "stack tight" },
      h(
        "div",
        { class: "knob" },
        h("label", { for: "k" }, "Clusters (k)"),
        count,
        control,
        button(`Suggested: ${suggested}`, () => choose(suggested), "small"),
      ),
      words,
    ),
    set,
    tell({ level }) {
      set(level.k);
      words.textContent = explainedWords(level);
    },
  };
}
