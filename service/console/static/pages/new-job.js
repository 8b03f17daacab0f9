// Plan and submit a job: cost and forecast follow every change, from the free call POST /v1/plans.

import { get, inWords, nextStep, Problem } from "../api.js";
import { clusterFields } from "../jobs/clusters.js";
import { h, replace, toast } from "../dom.js";
import {
  checkbox,
  decimal,
  field,
  form,
  guard,
  input,
  isDelta,
  isEpsilon,
  numberOf,
  optional,
  radios,
  refusedFields,
  select,
  submit,
} from "../forms.js";
import {
  amount,
  delta,
  epsilonInWords,
  number,
  oddsInWords,
  plural,
  sentence,
  strength,
  value,
  withPowers,
} from "../format.js";
import { offers } from "../jobs/offers.js";
import { lastRequest } from "../jobs/outcomes.js";
import { requestMore } from "../jobs/wanted.js";
import { periodFields, rangeInWords } from "../datasets/periods.js";
import { optionFields, readOptions } from "../jobs/options.js";
import { requestAsCurl, requestAsPython } from "../jobs/snippets.js";
import { tableChoices } from "../jobs/table-choices.js";
import { button, copyButton, explain, figures, gauge, notice } from "../widgets.js";
import { KINDS } from "./sites.js";

const LEAST = 0.01;

export async function newJob(context, name) {
  const [first, asked, algorithms, sites] = await Promise.all([
    get(`/v1/datasets/${name}`),
    lastRequest(context, name),
    get("/v1/algorithms").then((list) => list.items),
    get(`/v1/datasets/${name}/sites`)
      .then((list) => list.items)
      .catch(() => []),
  ]);
  const found = first;
  const periods = await periodFields(found);
  const held = found.cap ?? found.budget;
  const most = Math.max(1, Number(held.declared.epsilon));
  const dial = epsilonDial(most, Math.min(1, most));
  const usable = algorithms.filter((each) => each.domains.includes(found.kind));
  const algorithm = algorithmSelect(usable);
  const options = h("div", { class: "stack" });
  const clusters = clusterFields();
  const quote = h("div", { class: "stack", id: "quote" });
  const choices = tableChoices(found);
  const rehearsal = checkbox("rehearsal", "Rehearse first", {
    hint: "Runs on synthetic rows inside the public bounds. Free, and says nothing about the data.",
  });
  const send = submit("Submit");
  const elsewhere = h("div", { class: "row" }); // the same request for a program
  const fields = [
    periods.element,
    dial.element,
    clusters.element,
    field("Delta (δ)", input("delta", { inputmode: "decimal", placeholder: "automatic" }), {
      hint: "Leave it empty for a value that suits the dataset's size, or for what is left.",
      check: optional(isDelta),
    }),
    radios(
      "objective",
      "Centres are",
      [
        ["means", "means"],
        ["medians", "medians"],
      ],
      "means",
    ),
    field("Algorithm", algorithm),
    options,
    choices.element,
    rehearsal,
    h("div", { class: "row apart" }, send, elsewhere),
  ];
  const made = form(
    { class: "stack", "data-asks": "no" },
    fields,
    async () => {
      try {
        location.hash = `#/jobs/${(await offered.submit()).id}`;
      } catch (error) {
        if (error.slug === "not-found" && found.cap) {
          const again = requestMore(name, { plan: request() }); // the grant has ended meanwhile
          replace(refusal, explain(error, h("p", {}, again)));
          return false;
        }
        if (!["budget-exhausted", "cap-exhausted"].includes(error.slug)) throw error;
        refuse(
          refusal,
          error,
          found.cap && requestMore(name, { amount: error.body.request, plan: request() }),
        );
        return false;
      }
    },
    () => offered.holds(),
  );
  const refusal = h("div", { id: "refusal" });
  made.append(refusal);

  const drawOptions = () => {
    const chosen = usable.find((each) => each.name === algorithm.value);
    replace(options, siteField(chosen, sites), algorithmOptions(chosen));
    offerObjectives(made, chosen);
    offerOpenK();
  };
  const offerOpenK = () => {
    const able = usable.some((each) => each.leaves_k_open && ["auto", each.name].includes(algorithm.value));
    clusters.offer(
      able && ["dense", "table"].includes(found.kind) && new FormData(made).get("objective") === "means",
    );
  };
  algorithm.addEventListener("change", drawOptions);
  made.addEventListener("input", offerOpenK);
  drawOptions();

  const request = () => ({
    ...read(made, name, clusters.read(), usable),
    ...choices.read(),
    ...periods.read(),
  });
  const offered = offers(made, send, "Submit", {
    request,
    mistaken() {
      quote.classList.remove("busy");
      replace(quote, correctFirst());
    },
    working() {
      replace(elsewhere);
      quote.classList.add("busy");
    },
    priced(plan, body) {
      drawQuote(quote, plan, found, body, { useWhatRemains, useRange });
      replace(
        elsewhere,
        copyButton(() => requestAsPython(body), "Copy as Python"),
        copyButton(() => requestAsCurl(body), "Copy as curl"),
      );
      quote.classList.remove("busy");
    },
    failed(error) {
      if (refusedFields(made, error) && error.slug === "invalid-request") replace(quote, correctFirst());
      else replace(quote, explain(error));
      quote.classList.remove("busy");
    },
  });
  const changed = () => {
    if (!offered.isNew()) return;
    replace(refusal);
    offered.ask();
  };
  const useWhatRemains = (left) => {
    dial.set(left.epsilon);
    /** @type {HTMLInputElement} */ (made.querySelector("[name=delta]")).value = left.delta;
    changed();
  };
  const useRange = (range) => {
    periods.choose(range);
    changed();
  };
  made.addEventListener("input", changed);
  made.addEventListener("change", changed);
  context.signal.addEventListener("abort", offered.stop);
  offered.ask();

  const content = h(
    "div",
    { class: "stack loose" },
    h(
      "div",
      { class: "stack tight" },
      h(
        "p",
        { class: "crumb" },
        h("a", { href: "#/datasets" }, "Datasets"),
        " / ",
        h("a", { href: `#/datasets/${name}` }, name),
      ),
      h("h1", {}, "Plan a job"),
      h(
        "p",
        { class: "muted" },
        "Planning is free. The price is known before anything is read, and what was planned " +
          "is what is charged.",
      ),
    ),
    asked,
    h(
      "div",
      { class: "halves" },
      h("section", { class: "card" }, made),
      h("section", { class: "card sticky", "aria-label": "Cost and forecast" }, quote),
    ),
  );
  return { title: `Plan a job on ${name}`, content };
}

// The house algorithm first; those from the literature are a group of their own.
function algorithmSelect(usable) {
  const choice = (each) => [each.name, `${each.name}: ${each.summary}`];
  const own = usable.filter((each) => each.origin === "house").map(choice);
  const literature = usable.filter((each) => each.origin === "literature").map(choice);
  const made = select("algorithm", [["auto", "Auto: choose for me"], ...own]);
  const options = literature.map(([value, words]) => h("option", { value }, words));
  if (options.length) made.append(h("optgroup", { label: "From the literature" }, options));
  return made;
}

function correctFirst() {
  return h("p", { class: "muted" }, "Correct the marked fields to see the price.");
}

// A slider on a logarithmic scale next to the exact number.
function epsilonDial(most, start) {
  const at = (position) => LEAST * (most / LEAST) ** (position / 1000);
  const place = (epsilon) =>
    Math.round((1000 * Math.log(Math.max(epsilon, LEAST) / LEAST)) / Math.log(most / LEAST));
  const neat = (x) => String(Number(x.toPrecision(2)));
  const exact = input("epsilon", {
    inputmode: "decimal",
    value: neat(start),
    "aria-label": "Epsilon, exactly",
  });
  const slider = h("input", {
    type: "range",
    min: "0",
    max: "1000",
    step: "5",
    props: { value: String(place(start)) },
    "aria-label": "Epsilon",
  });
  const words = h("span", { class: "hint" });
  const tell = () => {
    const epsilon = numberOf(exact.value);
    words.textContent = epsilon > 0 ? `${strength(epsilon)}: ${oddsInWords(epsilon)}` : "";
    slider.setAttribute("aria-valuetext", `epsilon ${exact.value}, ${strength(epsilon)}`);
  };
  slider.addEventListener("input", () => {
    exact.value = neat(at(Number(slider.value)));
    tell();
  });
  exact.addEventListener("input", () => {
    if (numberOf(exact.value) > 0) slider.value = String(place(numberOf(exact.value)));
    tell();
  });
  tell();
  const element = h(
    "div",
    { class: "field" },
    h("span", { class: "label" }, "Epsilon (ε)"),
    h("div", { class: "pair" }, slider, exact),
    guard(exact, isEpsilon),
    words,
  );
  return {
    element,
    set(epsilon) {
      exact.value = epsilon;
      slider.value = String(place(Number(epsilon)));
      tell();
    },
  };
}

// Only what the algorithm can do can be chosen.
function offerObjectives(element, algorithm) {
  const choices = [...element.querySelectorAll("[name=objective]")];
  for (const each of choices)
    each.disabled = algorithm !== undefined && !algorithm.objectives.includes(each.value);
  if (choices.some((each) => each.checked && each.disabled))
    choices.find((each) => !each.disabled).checked = true;
}

// For algorithms that choose among public sites: which set of them.
function siteField(algorithm, sites) {
  if (!algorithm?.options?.properties?.sites) return null;
  if (!sites.length)
    return notice(
      "warn",
      h(
        "p",
        {},
        `${algorithm.name} chooses centres among public sites, and this dataset has none ` +
          "yet: ask its curator to store some.",
      ),
    );
  const choices = sites.map((each) => [
    each.name,
    `${each.name}: ${plural(each.count, "site")} by ${KINDS[each.kind] ?? each.kind}`,
  ]);
  return field("Public sites", select("sites", choices), { hint: "Centres are chosen among these." });
}

function algorithmOptions(algorithm) {
  const { others } = optionFields(algorithm?.options);
  return (
    others.length > 0 &&
    h("details", {}, h("summary", {}, `Options of ${algorithm.name}`), h("div", { class: "columns" }, others))
  );
}

function read(element, dataset, k, usable) {
  const data = new FormData(element);
  const body = {
    dataset,
    k,
    epsilon: decimal(data.get("epsilon")),
    algorithm: data.get("algorithm"),
    objective: data.get("objective"),
    rehearsal: data.get("rehearsal") !== null,
  };
  const delta = String(data.get("delta")).trim();
  if (delta) body.delta = decimal(delta);
  if (data.get("sites")) body.sites = data.get("sites");
  const options = readOptions(element);
  if (Object.keys(options).length && usable.some((each) => each.name === body.algorithm))
    body.options = options;
  return body;
}

function drawQuote(place, quote, found, body, uses) {
  const { rehearsal } = body;
  const { plan, accuracy, shortfall } = quote;
  const more = found.cap && shortfall && requestMore(found.name, { amount: shortfall.request, plan: body });
  const { tone, sentence: verdict } = accuracy.verdict;
  const after = quote.remaining_after;
  const { cap, budget } = quote.accounts;
  const within = ({ period }) => (period ? ` in ${period}, which has the least left` : "");
  replace(
    place,
    h(
      "div",
      { class: "row apart" },
      h("h2", {}, "Cost"),
      rehearsal && h("span", { class: "tag good" }, "rehearsal, free"),
    ),
    h(
      "div",
      { class: "row" },
      h("span", { class: "big", id: "cost" }, rehearsal ? "free" : amount(quote.cost)),
      !rehearsal &&
        h(
          "span",
          { class: "muted" },
          delta(quote.cost.delta) +
            (quote.cost.rho === undefined ? "" : ` · worth ε ${number(plan.privacy.epsilon)}`),
        ),
    ),
    !rehearsal &&
      h(
        "p",
        { class: "small muted" },
        epsilonInWords(plan.privacy.epsilon, plan.privacy.delta, found.privacy_unit),
      ),
    shortfall && tooMuch(shortfall, uses, more),
    !rehearsal && cap && account(`Your cap${within(cap)}`, cap, quote.cost),
    !rehearsal &&
      account(budget.period ? `Budget${within(budget)}` : "The dataset's budget", budget, quote.cost),
    !rehearsal &&
      after &&
      h(
        "p",
        { id: "after" },
        "Would remain after this job: ",
        h("strong", {}, amount(after.cap ?? after.budget)),
        after.cap ? [" of your cap, ", h("strong", {}, amount(after.budget)), " of the budget."] : ".",
      ),
    quote.population && !shortfall && h("p", { id: "of-person" }, withPowers(quote.population.sentence)),
    h(
      "p",
      { class: "small muted" },
      `The result appears ${number(quote.planned_seconds)} s after a worker takes the job.`,
    ),
    h("hr", {}),
    h("h2", {}, "Forecast"),
    accuracy.figures.length > 0 &&
      figures(
        accuracy.figures.map(({ name, label, value: figure, explanation }) => [
          label,
          h("span", { id: `forecast-${name.replaceAll("_", "-")}` }, figure),
          explanation,
        ]),
      ),
    tone ? notice(tone, h("p", {}, verdict)) : h("p", { class: "muted" }, verdict),
    h("p", { class: "small muted" }, accuracy.basis),
    h("h3", {}, `Algorithm: ${plan.algorithm}`),
    h("p", { class: "muted", id: "reason" }, plan.reason ? sentence(plan.reason) : "You chose it."),
    quote.warnings.map((words) => notice("warn", h("p", {}, sentence(words)))),
  );
}

function account(name, held, cost) {
  const share = `${delta(cost.delta)} of the ${delta(held.remaining.delta)} that remains`;
  return h(
    "div",
    { class: "stack tight" },
    h("h3", {}, name),
    gauge(held, { label: name, asked: value(cost) }),
    h("p", { class: "small muted" }, `This job takes ${share}.`),
  );
}

function tooMuch({ sentence: why, next, offer, largest_range: range }, { useWhatRemains, useRange }, more) {
  return h(
    "div",
    { class: "notice bad stack", id: "too-much" },
    h("p", {}, withPowers(why)),
    h("p", { class: "next" }, next),
    h(
      "div",
      { class: "row" },
      offer &&
        button(
          `Ask for what remains (${amount(offer)}, ${delta(offer.delta)})`,
          () => useWhatRemains(offer),
          "small",
        ),
      range && button(`Read ${rangeInWords(range)} only`, () => useRange(range), "small"),
      more,
    ),
  );
}

function refuse(place, problem, more) {
  const numbers = problem.body;
  const left = numbers.remaining;
  const entry = (label, a) =>
    h(
      "tr",
      {},
      h("td", {}, label),
      h("td", { class: "right" }, amount(a)),
      h("td", { class: "right" }, delta(a.delta)),
    );
  replace(
    place,
    h(
      "div",
      { class: "notice bad stack", role: "alert" },
      h("p", {}, h("strong", {}, "Refused. "), inWords(problem)),
      h(
        "table",
        {},
        h(
          "tbody",
          {},
          entry("Requested", numbers.requested),
          entry("Total", numbers.total),
          entry("Spent", numbers.spent),
          entry("Reserved by unfinished jobs", numbers.reserved),
          entry("Remaining", left),
        ),
      ),
      h("p", { class: "next" }, nextStep(problem), " Nothing was reserved or read."),
      more && h("div", { class: "row" }, more),
    ),
  );
  place.scrollIntoView({ block: "nearest" });
  if (problem instanceof Problem) toast("The job was refused; nothing was spent.", "bad");
}
