// Requests for access: what analysts ask for, what waits for a curator to decide, and what became of it.

import { get, pages, post, remove } from "../api.js";
import { readTerms, questionsBox, termFields, termsInWords } from "../datasets/terms.js";
import { h, toast } from "../dom.js";
import {
  budgetFields,
  decimal,
  field,
  filled,
  form,
  input,
  isDelta,
  isEpsilon,
  optional,
  submit,
} from "../forms.js";
import { amount, delta, moment, plural, sentence, withPowers } from "../format.js";
import { outcome, STATES } from "../jobs/outcomes.js";
import { forgetWanted, wantedOf } from "../jobs/wanted.js";
import { button, confirm, dialog, gauge, growing, tag } from "../widgets.js";

const LISTED = {
  curator: "What analysts ask for on your datasets, and what waits for a second curator, newest first.",
  analyst: "What you asked for, newest first. The owner of the dataset decides.",
  auditor: "All requests for access, newest first.",
};

export async function requests({ me, reload }) {
  const list = growing(
    pages("/v1/requests", 20),
    (items) =>
      items.length
        ? h(
            "ul",
            { class: "plain stack" },
            items.map((each) => h("li", {}, card(each, me, reload))),
          )
        : h("p", { class: "muted" }, nothing(me)),
    {
      words: (each) =>
        [each.dataset, each.asked_by, each.analyst, each.asked.purpose, each.asked.permit].join(" "),
      find: "Find a request",
    },
  );
  await list.more();
  const content = h(
    "div",
    { class: "stack loose" },
    h("div", { class: "stack tight" }, h("h1", {}, "Requests"), h("p", { class: "muted" }, LISTED[me.role])),
    list.place,
  );
  return { title: "Requests", content };
}

const nothing = (me) =>
  me.role === "analyst"
    ? "No requests yet. On the page of a dataset, or at the price of a job that does not fit, you can request more."
    : "No requests yet.";

function card(request, me, reload) {
  const [words, kind] = STATES[request.state];
  const whose = request.analyst && request.analyst !== request.asked_by ? ` for ${request.analyst}` : "";
  const period = request.period ? ` of the period ${request.period}` : "";
  const owns = me.role !== "analyst" && request.owner === me.name;
  const who = request.asked_by === me.name ? "You ask" : `${request.asked_by} asks`;
  return h(
    "article",
    { class: "card stack" },
    h(
      "div",
      { class: "row apart" },
      h(
        "h2",
        {},
        owns ? h("a", { href: `#/datasets/${request.dataset}` }, request.dataset) : request.dataset,
      ),
      tag(words, kind),
    ),
    h(
      "div",
      {},
      h("p", {}, withPowers(`${who} for ${request.asked.words}${whose}${period}.`)),
      termsInWords({ purpose: request.asked.purpose }),
      h("p", { class: "small muted" }, `${moment(request.asked_at)} · ${request.id.slice(0, 8)}`),
    ),
    request.plan && planned(request.plan),
    request.standing && standing(request),
    request.state !== "open" && h("p", {}, withPowers(outcome(request))),
    request.acts.length > 0 && h("div", { class: "row" }, actions(request, reload)),
  );
}

function planned(plan) {
  const verdict = plan.accuracy?.verdict.sentence;
  const cost = plan.cost && ` It costs ${amount(plan.cost)}, ${delta(plan.cost.delta)}.`;
  return h(
    "div",
    { class: "notice" },
    h("p", {}, `For a job: ${plan.asked_for}.${cost ?? ""}`),
    verdict && h("p", { class: "small" }, verdict),
    plan.problem && h("p", { class: "small" }, `It cannot be planned now: ${sentence(plan.problem)}`),
  );
}

function standing({ analyst, standing: { budget, cap, others } }) {
  return h(
    "div",
    { class: "halves" },
    h(
      "div",
      { class: "stack tight" },
      h("h3", {}, "The dataset's budget"),
      gauge(budget, { label: "Budget" }),
    ),
    h(
      "div",
      { class: "stack tight" },
      cap && [h("h3", {}, `Cap of ${analyst}`), gauge(cap, { label: `Cap of ${analyst}` })],
      others &&
        h(
          "p",
          { class: "small muted" },
          others.analysts
            ? `${plural(others.analysts, "other analyst")} may spend ${amount(others.caps)} in all.`
            : "Nobody else has a grant.",
        ),
    ),
  );
}

function actions(request, reload) {
  const place = `/v1/requests/${request.id}`;
  const made = {
    grant: () => button("Grant", () => grant(request, reload), "primary"),
    second: () =>
      button(
        "Agree",
        async () => {
          await post(`${place}/second`, {});
          toast("You agreed. It is done.");
          await reload();
        },
        "primary",
      ),
    decline: () => button("Decline", () => decline(request, reload)),
    withdraw: () =>
      button("Withdraw the request", () =>
        confirm("Withdraw this request?", "You can ask again.", "Withdraw it", async () => {
          await remove(place);
          toast("The request is withdrawn.");
          await reload();
        }),
      ),
  };
  return request.acts.map((act) => made[act]());
}

const reasonField = (check) =>
  field("A word to who asked", h("textarea", { name: "reason", rows: "2", maxlength: "2000" }), { check });

const ends = (close, words, kind = "primary") =>
  h(
    "div",
    { class: "row end" },
    h("button", { type: "button", on: { click: close } }, "Cancel"),
    submit(words, kind),
  );

function grant(request, reload) {
  const { asked, standing: held } = request;
  const present = held.cap?.declared ?? held.budget.declared;
  dialog(`Grant ${request.analyst} a cap on ${request.dataset}`, (close) =>
    form(
      {},
      [
        h("p", {}, withPowers(`Asked for: ${asked.words}. Grant it as it is, or something else.`)),
        budgetFields({
          epsilon: asked.epsilon ?? present.epsilon,
          delta: asked.delta ?? present.delta,
          hintEpsilon: "The most they may spend in all.",
        }),
        asked.kinds && h("p", { class: "small muted" }, `Kinds of jobs: ${asked.kinds.join(", ")}`),
        ...termFields(asked, "Empty: as it is, or no end."),
        reasonField(),
        ends(close, "Grant"),
      ],
      async (data) => {
        const done = await post(`/v1/requests/${request.id}/grant`, {
          epsilon: decimal(data.get("epsilon")),
          delta: decimal(data.get("delta")),
          ...changed(readTerms(data), asked),
          reason: data.get("reason").trim(),
        });
        close();
        toast(
          done.state === "proposed"
            ? "This is more than one curator may allow: a second one must agree."
            : `${request.analyst} may now use ${request.dataset}.`,
        );
        await reload();
      },
    ),
  );
}

// What a form says otherwise than a request: an empty field of a term that was not asked for stays as it is.
function changed(terms, asked) {
  const before = { purpose: asked.purpose ?? "", permit: asked.permit ?? "", ends_at: asked.ends_at };
  const same = (name) =>
    name === "ends_at"
      ? (terms.ends_at && new Date(terms.ends_at).getTime()) ===
        (before.ends_at && new Date(before.ends_at).getTime())
      : terms[name] === before[name];
  return Object.fromEntries(Object.entries(terms).filter(([name]) => !same(name)));
}

function decline(request, reload) {
  dialog(`Decline the request of ${request.asked_by}`, (close) =>
    form({}, [reasonField(filled("Say why, in a word.")), ends(close, "Decline", "danger")], async (data) => {
      await post(`/v1/requests/${request.id}/decline`, { reason: data.get("reason").trim() });
      close();
      toast("The request is declined.");
      await reload();
    }),
  );
}

// The form of a request: for access to a dataset, or for more of it.
export async function requestAccess({ signal }, name) {
  const found = await get(`/v1/datasets/${name}`, { signal }).catch((error) => {
    if (error.status !== 404) throw error;
    return null; // no grant, or one that has ended
  });
  const wanted = wantedOf(name);
  const present = wanted.amount ?? found?.cap.declared;
  const questions = questionsBox(found?.kinds);
  const numeric = { inputmode: "decimal" };
  const made = form(
    {},
    [
      h(
        "div",
        { class: "columns" },
        field("Epsilon (ε)", input("epsilon", { ...numeric, value: present?.epsilon ?? "" }), {
          hint: found ? "Of the whole cap, not what is added to it." : "The most that you may spend.",
          check: optional(isEpsilon),
        }),
        field("Delta (δ)", input("delta", { ...numeric, value: present?.delta ?? "" }), {
          hint: "0 allows pure differential privacy only.",
          check: optional(isDelta),
        }),
      ),
      questions.element,
      ...termFields(found?.grant),
      wanted.plan &&
        h(
          "p",
          { class: "small muted", id: "for-plan" },
          `The job that did not fit is sent with the request, with its price and forecast.`,
        ),
      submit("Send the request"),
    ],
    async (data) => {
      const amounts = ["epsilon", "delta"].filter((each) => data.get(each).trim());
      const sent = await post("/v1/requests", {
        dataset: name,
        ...Object.fromEntries(amounts.map((each) => [each, decimal(data.get(each))])),
        ...(await questions.read(data)),
        ...changed(readTerms(data), found?.grant ?? {}),
        ...(wanted.plan ? { plan: { ...wanted.plan, rehearsal: false } } : {}),
      });
      forgetWanted(name);
      toast(`Sent to ${sent.owner}, who decides.`);
      location.hash = "#/requests";
    },
  );
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
        found && [" / ", h("a", { href: `#/datasets/${name}` }, name)],
      ),
      h("h1", {}, found ? `Request more of ${name}` : `Request access to ${name}`),
      h("p", { class: "muted" }, "The owner of the dataset reads this and grants all, less, or nothing."),
    ),
    h("section", { class: "card narrow" }, made),
  );
  return { title: `Request ${name}`, content };
}
