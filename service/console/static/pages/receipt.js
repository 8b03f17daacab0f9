// The receipt in plain words: who is protected, how well, and every step that was paid for.

import { download, save } from "../api.js";
import { h } from "../dom.js";
import { amount, delta, epsilonInWords, number, percent, strength } from "../format.js";
import { button, copyButton, facts, table } from "../widgets.js";

const MECHANISMS = {
  gaussian: (m) => `bell-shaped noise, ${number(1 / m.mu, 3)} times one record's influence`,
  laplace: (m) =>
    `two-sided exponential noise, scale ${number(1 / m.epsilon, 3)} times one record's influence`,
  l2: (m) => `noise in a random direction, scale ${number(1 / m.epsilon, 3)} times one record's influence`,
  choice: (m) => `a random choice that favours better candidates (ε ${number(m.epsilon, 3)})`,
  "top-choice": (m) =>
    "random choices without repetition that favour better candidates " +
    `(${m.concentrated ? "ρ" : "ε"} ${number(m.amount, 3)})`,
  threshold: () => "noise on every count, and only counts that stay large are kept",
  coverage: () => "one charge for all rounds of random choices",
};

function noiseOf(step) {
  return MECHANISMS[step.mechanism.kind]?.(step.mechanism) ?? step.mechanism.kind;
}

function often(repeats) {
  return repeats === 1 ? "once" : `${repeats} times`;
}

function bar(share) {
  if (share === null || share === undefined) return "–";
  return h(
    "span",
    { class: "share", vars: { share: `${100 * share}%` } },
    h("span", { "aria-hidden": "true" }),
    h("span", { class: "nowrap" }, percent(share)),
  );
}

const FAMILIES = {
  gaussian: "bell-shaped noise",
  laplace: "two-sided exponential noise",
  l2: "noise in a random direction",
};

// Steps that learn the same thing, together: what was it for, how often, at what share of the whole.
function purposes(steps) {
  const groups = new Map();
  for (const step of steps) {
    const purpose = step.purpose || step.name;
    const group = groups.get(purpose) ?? {
      purpose: purpose.charAt(0).toUpperCase() + purpose.slice(1),
      repeats: 0,
      noises: [],
      share: 0,
    };
    group.repeats += step.repeats;
    group.share = step.share === null || group.share === null ? null : group.share + step.share;
    const words = FAMILIES[step.mechanism.kind] ?? noiseOf(step);
    if (!group.noises.includes(words)) group.noises.push(words);
    groups.set(purpose, group);
  }
  return [...groups.values()];
}

// A digest alone proves nothing: anybody can make one. The signature of the service does.
export function signed(receipt) {
  return receipt.signature
    ? ["by the service, with the key ", h("code", {}, receipt.signature.key)]
    : "no: receipts of format 1 are not signed";
}

export function receiptView(receipt) {
  const unit = receipt.privacy_unit;
  const short = receipt.job.slice(0, 8);
  const { epsilon, delta: d } = receipt.privacy;
  const rows = purposes(receipt.steps).map((group) => [
    group.purpose,
    often(group.repeats),
    group.noises.join("; "),
    bar(group.share),
  ]);
  const steps = receipt.steps.map((step) => [
    h("code", {}, step.name),
    often(step.repeats),
    noiseOf(step),
    bar(step.share),
  ]);
  const who =
    unit === "person"
      ? `Each person, with all of their rows (at most ${receipt.domain.rows_per_person}).`
      : "Each single row. A person with several rows is protected less.";
  return h(
    "section",
    { class: "card stack", id: "receipt" },
    h(
      "div",
      { class: "row apart" },
      h("h2", {}, "Receipt"),
      h(
        "div",
        { class: "row" },
        receipt.explanation?.length > 0 &&
          h("a", { class: "button small", href: `#/jobs/${receipt.job}/report` }, "Report"),
        receipt.citation && copyButton(() => receipt.citation, "Copy citation"),
        receipt.citation &&
          button(
            "Registry entry",
            () =>
              save(
                new Blob([JSON.stringify(receipt.registry, null, 2).replace(/: (\d)e-/g, ": $1.0e-")], {
                  type: "application/yaml",
                }),
                `registry-${short}.yaml`,
              ),
            "small",
          ),
        button(
          "Download",
          () => download(`/v1/jobs/${receipt.job}/receipt`, "application/json", `receipt-${short}.json`),
          "small",
        ),
      ),
    ),
    receipt.rehearsal
      ? h("p", {}, receipt.statement)
      : facts([
          ["Who is protected", who],
          [
            "How well",
            `${strength(epsilon).replace(/^./, (c) => c.toUpperCase())}. ${epsilonInWords(epsilon, d, unit)}`,
          ],
          [
            "Charged",
            `${amount(receipt.charged)} and ${delta(receipt.charged.delta)}, under the accountant ` +
              receipt.accountant,
          ],
          [
            "Neighbouring datasets",
            `${receipt.neighbours.charAt(0).toUpperCase()}${receipt.neighbours.slice(1)}.`,
          ],
        ]),
    h("h3", {}, "What was measured"),
    table(
      [{ name: "To learn" }, { name: "How often" }, { name: "Protected by" }, { name: "Share of the loss" }],
      rows,
      { label: "Steps of the receipt" },
    ),
    h(
      "details",
      {},
      h("summary", {}, `Every step with its noise (${receipt.steps.length})`),
      table(
        [{ name: "Step" }, { name: "How often" }, { name: "Noise" }, { name: "Share of the loss" }],
        steps,
        { label: "Every step" },
      ),
    ),
    h(
      "details",
      {},
      h("summary", {}, "For the record"),
      facts([
        ["Digest of this receipt", h("code", {}, receipt.digest)],
        ["Signed", signed(receipt)],
        ["Digest of the plan", h("code", {}, receipt.plan_digest)],
        [
          "Versions",
          Object.entries(receipt.versions)
            .map(([name, version]) => `${name} ${version}`)
            .join(", "),
        ],
      ]),
    ),
  );
}
