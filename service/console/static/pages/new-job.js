// Plan and submit a job: cost and forecast follow every change, from the free call POST /v1/plans.

import { get, nextStep, post, Problem } from "../api.js";
import { announce, h, replace, toast } from "../dom.js";
import { expectations } from "../forecast.js";
import { amount, count, delta, epsilonInWords, number, plural, sentence, strength, value } from "../format.js";
import { checkbox, decimal, explain, facts, field, figures, form, gauge, input, notice, radios, select, submit } from "../widgets.js";
import { KINDS } from "./sites.js";

const PAUSE = 250; // milliseconds of quiet after which a change is worth a question
const LEAST = 0.01;

export async function newJob(context, name) {
  const [first, algorithms, sites] = await Promise.all([
    get(`/v1/datasets/${name}`),
    get("/v1/algorithms").then((list) => list.items),
    get(`/v1/datasets/${name}/sites`).then((list) => list.items).catch(() => []),
  ]);
  let found = first;
  const held = found.cap ?? found.budget;
  const most = Math.max(1, Number(held.declared.epsilon));
  const dial = epsilonDial(most, Math.min(1, most));
  const usable = algorithms.filter((each) => each.domains.includes(found.kind));
  const algorithm = select("algorithm", [["auto", "Auto: choose for me"], ...usable.map((each) => [each.name, `${each.name}: ${each.summary}`])]);
  const options = h("div", { class: "stack" });
  const quote = h("div", { class: "stack", id: "quote" });
  const rehearsal = checkbox("rehearsal", "Rehearse first", { hint: "Runs on made-up rows inside the public bounds. Free, and says nothing about the data." });
  const send = submit("Submit");

  const fields = [
    dial.element,
    h(
      "div",
      { class: "columns" },
      field("Clusters (k)", input("k", { type: "number", min: "1", max: "10000", step: "1", required: true, value: "4" })),
      field("Delta (δ)", input("delta", { inputmode: "decimal", placeholder: "automatic", pattern: "[0-9]*[.]?[0-9]*([eE]-?[0-9]+)?" }), { hint: "Empty: a value that suits the size." }),
    ),
    radios("objective", "Centres are", [["means", "means"], ["medians", "medians"]], "means"),
    field("Algorithm", algorithm),
    options,
    rehearsal,
    h("div", { class: "row" }, send),
  ];
  const made = form({ class: "stack" }, fields, async (_data, element) => {
    const body = { ...read(element, name, usable), rehearsal: rehearsal.querySelector("input").checked };
    try {
      const job = await post("/v1/jobs", body, { idempotencyKey: crypto.randomUUID?.() ?? String(Math.random()).slice(2) });
      location.hash = `#/jobs/${job.id}`;
    } catch (error) {
      if (!["budget-exhausted", "cap-exhausted"].includes(error.slug)) throw error;
      found = await get(`/v1/datasets/${name}`);
      refuse(refusal, error, least(found), (left) => {
        dial.set(left.epsilon);
        const asked = Number(error.body.requested.delta);
        if (Number(left.delta) < asked) element.querySelector("[name=delta]").value = left.delta;
        replace(refusal);
        ask();
      });
    }
  });
  const refusal = h("div", { id: "refusal" });
  made.append(refusal);

  const drawOptions = () => {
    const chosen = usable.find((each) => each.name === algorithm.value);
    replace(options, siteField(chosen, sites), optionFields(chosen));
    offerObjectives(made, chosen);
  };
  algorithm.addEventListener("change", drawOptions);
  drawOptions();

  let waiting = null;
  let asking = new AbortController();
  const ask = () => {
    clearTimeout(waiting);
    asking.abort();
    asking = new AbortController();
    quote.classList.add("busy");
    waiting = setTimeout(() => question(asking.signal), PAUSE);
  };
  const question = async (signal) => {
    const isRehearsal = rehearsal.querySelector("input").checked;
    try {
      const answer = await post("/v1/plans", read(made, name, usable), { signal });
      drawQuote(quote, answer, found, isRehearsal);
      send.textContent = isRehearsal ? "Rehearse for free" : `Submit for ${amount(answer.cost)}`;
      announce(isRehearsal ? "A rehearsal is free." : `Cost ${amount(answer.cost)}. ${answer.fits ? `${amount(answer.remaining_after.cap ?? answer.remaining_after.budget)} would remain.` : "This does not fit."}`);
    } catch (error) {
      if (error.name === "AbortError") return;
      replace(quote, explain(error));
      send.textContent = "Submit";
      if (error.slug === "rate-limited") waiting = setTimeout(ask, 1000 * (error.retryAfter ?? 5));
    }
    quote.classList.remove("busy");
  };
  made.addEventListener("input", ask);
  made.addEventListener("change", ask);
  context.signal.addEventListener("abort", () => {
    clearTimeout(waiting);
    asking.abort();
  });
  ask();

  const content = h(
    "div",
    { class: "stack loose" },
    h(
      "div",
      { class: "stack tight" },
      h("p", { class: "crumb" }, h("a", { href: "#/datasets" }, "Datasets"), " / ", h("a", { href: `#/datasets/${name}` }, name)),
      h("h1", {}, "Plan a job"),
      h("p", { class: "muted" }, "Planning is free. The price is known before anything is read, and what was planned is what is charged."),
    ),
    h("div", { class: "halves" }, h("section", { class: "card" }, made), h("section", { class: "card sticky", "aria-label": "Cost and forecast" }, quote)),
  );
  return { title: `Plan a job on ${name}`, content };
}

// A slider on a logarithmic scale beside the exact number.
function epsilonDial(most, start) {
  const at = (position) => LEAST * (most / LEAST) ** (position / 1000);
  const place = (epsilon) => Math.round((1000 * Math.log(Math.max(epsilon, LEAST) / LEAST)) / Math.log(most / LEAST));
  const neat = (x) => String(Number(x.toPrecision(2)));
  const exact = input("epsilon", { inputmode: "decimal", required: true, pattern: "[0-9]*[.]?[0-9]*([eE]-?[0-9]+)?", value: neat(start), "aria-label": "Epsilon, exactly" });
  const slider = h("input", { type: "range", min: "0", max: "1000", step: "5", props: { value: String(place(start)) }, "aria-label": "Epsilon" });
  const words = h("span", { class: "hint" });
  const tell = () => {
    const epsilon = Number(exact.value);
    words.textContent = epsilon > 0 ? `${strength(epsilon)}: odds change by a factor of at most ${number(Math.exp(epsilon), 3)}` : "";
    slider.setAttribute("aria-valuetext", `epsilon ${exact.value}, ${strength(epsilon)}`);
  };
  slider.addEventListener("input", () => {
    exact.value = neat(at(Number(slider.value)));
    tell();
  });
  exact.addEventListener("input", () => {
    slider.value = String(place(Number(exact.value)));
    tell();
  });
  tell();
  const element = h("div", { class: "field" }, h("span", { class: "label" }, "Epsilon (ε)"), h("div", { class: "pair" }, slider, exact), words);
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
  for (const each of choices) each.disabled = algorithm !== undefined && !algorithm.objectives.includes(each.value);
  if (choices.some((each) => each.checked && each.disabled)) choices.find((each) => !each.disabled).checked = true;
}

// For algorithms that choose among public sites: which set of them.
function siteField(algorithm, sites) {
  if (!algorithm?.options?.properties?.sites) return null;
  if (!sites.length) return notice("warn", h("p", {}, `${algorithm.name} chooses centres among public sites, and this dataset has none yet: ask its curator to store some.`));
  const choices = sites.map((each) => [each.name, `${each.name}: ${plural(each.count, "site")} by ${KINDS[each.kind] ?? each.kind}`]);
  return field("Public sites", select("sites", choices), { hint: "Centres are chosen among these." });
}

function optionFields(algorithm) {
  const properties = Object.entries(algorithm?.options?.properties ?? {}).filter(([, each]) => each.type !== "object");
  if (!properties.length) return null;
  const controls = properties.map(([key, each]) => {
    const named = key.replaceAll("_", " ");
    const attributes = { "data-option": key, "data-type": each.type };
    if (each.enum) return field(named, select(`option-${key}`, [["", "automatic"], ...each.enum.map((word) => [word, word])], attributes), { hint: each.description });
    if (each.type === "boolean") return field(named, select(`option-${key}`, [["", "automatic"], ["true", "yes"], ["false", "no"]], attributes), { hint: each.description });
    const limits = { type: "number", min: each.minimum, max: each.maximum, step: each.type === "integer" ? "1" : "any", placeholder: each.default ?? "automatic" };
    return field(named, input(`option-${key}`, { ...limits, ...attributes }), { hint: each.description });
  });
  return h("details", {}, h("summary", {}, `Options of ${algorithm.name}`), h("div", { class: "columns" }, controls));
}

function read(element, dataset, usable) {
  const data = new FormData(element);
  const body = { dataset, k: Number(data.get("k")), epsilon: decimal(data.get("epsilon")), algorithm: data.get("algorithm"), objective: data.get("objective") };
  if (data.get("delta").trim()) body.delta = decimal(data.get("delta"));
  if (data.get("sites")) body.sites = data.get("sites");
  const options = {};
  for (const control of element.querySelectorAll("[data-option]")) {
    if (control.value === "") continue;
    const type = control.dataset.type;
    options[control.dataset.option] = type === "boolean" ? control.value === "true" : type === "string" ? control.value : Number(control.value);
  }
  if (Object.keys(options).length && usable.some((each) => each.name === body.algorithm)) body.options = options;
  return body;
}

function drawQuote(place, quote, found, rehearsal) {
  const plan = quote.plan;
  const expected = expectations(quote);
  const after = quote.remaining_after;
  replace(
    place,
    h("div", { class: "row apart" }, h("h2", {}, "Cost"), rehearsal && h("span", { class: "tag good" }, "rehearsal, free")),
    h("div", { class: "row" }, h("span", { class: "big", id: "cost" }, rehearsal ? "free" : amount(quote.cost)), !rehearsal && h("span", { class: "muted" }, `${delta(quote.cost.delta)}${quote.cost.rho === undefined ? "" : ` · worth ε ${number(plan.privacy.epsilon)}`}`)),
    !rehearsal && h("p", { class: "small muted" }, epsilonInWords(plan.privacy.epsilon, plan.privacy.delta, found.privacy_unit)),
    !rehearsal && !quote.fits && notice("bad", h("p", {}, `This does not fit: ${wanting(found, quote.cost)}. A job would be refused.`), h("p", { class: "next" }, "Ask for less, or ask the curator for more.")),
    !rehearsal && found.cap && account("Your cap", found.cap, quote.cost),
    !rehearsal && account("The dataset's budget", found.budget, quote.cost),
    !rehearsal && after && h("p", { id: "after" }, "Would remain after this job: ", h("strong", {}, amount(after.cap ?? after.budget)), after.cap ? [" of your cap, ", h("strong", {}, amount(after.budget)), " of the budget."] : "."),
    h("hr", {}),
    h("h2", {}, "Forecast"),
    expected.figures.length > 0 && figures(expected.figures.map(([key, name, figure, words]) => [name, h("span", { id: `forecast-${key.replaceAll("_", "-")}` }, figure), words])),
    expected.verdict && notice(expected.verdict[1], h("p", {}, expected.verdict[0])),
    expected.others.length > 0 && facts(expected.others),
    !expected.figures.length && !expected.others.length && h("p", { class: "muted", id: "no-forecast" }, `${plan.algorithm} makes no forecast. A rehearsal is free and shows what an answer looks like.`),
    h("p", { class: "small muted" }, `From public numbers alone: ${plural(expected.measurements, "measurement")} with noise, for about ${count(plan.domain.size)} records.`),
    h("h3", {}, `Algorithm: ${plan.algorithm}`),
    h("p", { class: "muted", id: "reason" }, plan.reason ? sentence(plan.reason) : "You chose it."),
    quote.warnings.map((words) => notice("warn", h("p", {}, sentence(words)))),
  );
}

function account(name, held, cost) {
  const share = `${delta(cost.delta)} of the ${delta(held.remaining.delta)} that remains`;
  return h("div", { class: "stack tight" }, h("h3", {}, name), gauge(held, { label: name, asked: value(cost) }), h("p", { class: "small muted" }, `This job takes ${share}.`));
}

// Which amount is too large, for which account.
function wanting(found, cost) {
  const short = [];
  for (const [name, held] of [["your cap", found.cap], ["the dataset's budget", found.budget]]) {
    if (!held) continue;
    if (value(cost) > value(held.remaining)) short.push(`${amount(cost)} is more than the ${amount(held.remaining)} that ${name} has left`);
    if (Number(cost.delta) > Number(held.remaining.delta)) short.push(`${delta(cost.delta)} is more than the ${delta(held.remaining.delta)} that ${name} has left`);
  }
  return short[0] ?? "what remains has just changed";
}

// What remains for one more job: both accounts must have it.
function least(found) {
  const held = [found.cap, found.budget].filter(Boolean).map((each) => each.remaining);
  const smaller = (key) => held.map((each) => each[key]).reduce((a, b) => (Number(b) < Number(a) ? b : a));
  return held[0].rho === undefined ? { epsilon: smaller("epsilon"), delta: smaller("delta") } : null;
}

function refuse(place, problem, possible, useWhatRemains) {
  const numbers = problem.body;
  const left = numbers.remaining;
  const entry = (label, a) => h("tr", {}, h("td", {}, label), h("td", { class: "right" }, amount(a)), h("td", { class: "right" }, delta(a.delta)));
  replace(
    place,
    h(
      "div",
      { class: "notice bad stack", role: "alert" },
      h("p", {}, h("strong", {}, "Refused. "), `This asks for ${amount(numbers.requested)} and ${delta(numbers.requested.delta)}; ${problem.slug === "cap-exhausted" ? "your cap" : "the dataset's budget"} has ${amount(left)} and ${delta(left.delta)} left.`),
      h("table", {}, h("tbody", {}, entry("Requested", numbers.requested), entry("Total", numbers.total), entry("Spent", numbers.spent), entry("Reserved by unfinished jobs", numbers.reserved), entry("Remaining", left))),
      h("p", { class: "next" }, nextStep(problem), " Nothing was reserved or read."),
      possible && value(possible) > 0 && h("div", {}, h("button", { type: "button", class: "small", on: { click: () => useWhatRemains(possible) } }, `Ask for what remains (${amount(possible)}, ${delta(possible.delta)})`)),
    ),
  );
  place.scrollIntoView({ block: "nearest" });
  if (problem instanceof Problem) toast("The job was refused; nothing was spent.", "bad");
}
