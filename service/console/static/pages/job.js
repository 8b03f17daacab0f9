// One job: progress while it runs, then the result and its receipt.

import { get, poll, post, put, remove } from "../api.js";
import { askMore } from "../jobs/ask-more.js";
import { announce, h, replace, toast } from "../dom.js";
import { findingsView } from "../results/findings.js";
import { amount, delta, moment, number } from "../format.js";
import { field, form, input, submit } from "../forms.js";
import { chosenFacts } from "../jobs/table-choices.js";
import { button, confirm, dialog, explain, facts, notice, state, tag } from "../widgets.js";
import { chooseOther } from "./compare.js";
import { singleResultView } from "../results/merged-result.js";
import { openResultView } from "../results/open-result.js";
import { receiptView } from "./receipt.js";

export async function job({ me, signal }, id) {
  const first = await poll(`/v1/jobs/${id}`);
  const place = h("div", { class: "stack loose" });
  const head = h("div", { class: "row" });
  const actions = h("div", { class: "row" });
  const note = h("p", { class: "written" });
  const own = (now) => now.analyst === me.name;
  const show = async (now) => {
    replace(
      head,
      h("h1", {}, now.name || `${now.asked_for} of ${now.dataset}`),
      state(now.state),
      now.rehearsal && tag("rehearsal", "warn"),
    );
    replace(
      actions,
      now.state === "succeeded" &&
        me.role !== "auditor" &&
        (!now.request.kind || now.links.differences) &&
        button("Compare", () => chooseOther(now)),
      own(now) && h("a", { class: "button", href: `#/datasets/${now.dataset}/job` }, "Plan another"),
      own(now) && button("Name and note", () => describe(now, show)),
      own(now) && now.state === "queued" && button("Cancel", () => cancel(now), "danger"),
      me.role === "curator" &&
        (own(now) ? ["running"] : ["queued", "running"]).includes(now.state) &&
        button("End", () => end(now), "danger"),
    );
    replace(note, now.note);
    note.hidden = !now.note;
    if (now.state === "succeeded") await released(place, now, me);
    else replace(place, waiting(now));
  };
  const cancel = (now) =>
    confirm(
      "Cancel this job?",
      "No worker has taken it yet, so its reservation is released.",
      "Cancel the job",
      async () => {
        const after = await remove(`/v1/jobs/${now.id}`);
        toast("Cancelled; nothing was charged.");
        await show(after);
      },
      { dismiss: "Keep the job" },
    );
  const end = (now) =>
    confirm(
      "End this job?",
      now.state === "queued"
        ? "No worker has taken it yet, so nothing is charged."
        : "There will be no result. It remains charged, because it may have read rows.",
      "End the job",
      async () => {
        const after = await post(`/v1/jobs/${now.id}/end`);
        toast("Ended.");
        await show(after);
      },
      { dismiss: "Keep the job" },
    );
  await show(first.body);
  follow(first, signal, show);
  const content = h(
    "div",
    { class: "stack loose" },
    h(
      "div",
      { class: "head" },
      h(
        "div",
        { class: "stack tight" },
        h(
          "p",
          { class: "crumb" },
          h("a", { href: "#/jobs" }, "Jobs"),
          " / ",
          h("a", { href: `#/datasets/${first.body.dataset}` }, first.body.dataset),
        ),
        head,
        h(
          "p",
          { class: "muted small" },
          `Submitted ${moment(first.body.queued_at)} by ${first.body.analyst} · `,
          h("code", {}, first.body.id),
        ),
        note,
      ),
      actions,
    ),
    place,
  );
  return { title: `Job on ${first.body.dataset}`, content };
}

function describe(now, show) {
  dialog("Name and note", (close) => [
    form(
      {},
      [
        field("Name", input("name", { value: now.name, maxlength: "80" }), {
          hint: "Shown in the list of jobs instead of its description.",
        }),
        field(
          "Note",
          h("textarea", { name: "note", rows: "4", maxlength: "2000", props: { value: now.note } }),
          { hint: "You and the dataset's curator can read it." },
        ),
        h(
          "div",
          { class: "row end" },
          h("button", { type: "button", on: { click: close } }, "Cancel"),
          submit("Save"),
        ),
      ],
      async (data) => {
        const after = await put(`/v1/jobs/${now.id}/note`, {
          name: data.get("name").trim(),
          note: data.get("note").trim(),
        });
        close();
        await show(after);
      },
    ),
  ]);
}

// Asks again when the service says there may be news, and not earlier; a dropped connection is waited out.
async function follow({ body, retryAfter }, signal, show) {
  let pause = retryAfter;
  let now = body;
  let failures = 0;
  while (["queued", "running"].includes(now.state) && !signal.aborted) {
    await new Promise((resolve) => {
      const timer = setTimeout(resolve, 1000 * Math.min(30, pause ?? 1));
      signal.addEventListener("abort", () => {
        clearTimeout(timer);
        resolve();
      });
    });
    if (signal.aborted) return;
    try {
      const answer = await poll(`/v1/jobs/${now.id}`, signal);
      const changed = answer.body.state !== now.state;
      now = answer.body;
      pause = answer.retryAfter;
      failures = 0;
      if (changed) announce(`The job is ${now.state}.`);
      await show(now);
    } catch (error) {
      if (signal.aborted || error.name === "AbortError" || error.status === 401) return;
      failures += 1;
      pause = Math.min(30, 2 ** failures);
      if (failures === 1) toast(`${error.message}. The job keeps running; the page will try again.`, "bad");
    }
  }
}

const PHASES = {
  queued: "Waiting for a worker. The cost is reserved, not yet charged; you can still cancel.",
  running:
    "A worker has taken the job and the cost is charged. You can close this page; the job keeps running.",
};

function waiting(now) {
  const planned = now.progress?.planned ?? 0;
  const measured = now.progress?.measured ?? 0;
  const facing = now.state === "queued" || now.state === "running";
  return h(
    "section",
    { class: "card stack", "aria-live": "polite" },
    h(
      "h2",
      {},
      { queued: "In the queue", running: "Running", failed: "No result", cancelled: "Cancelled" }[now.state],
    ),
    facing &&
      h("progress", {
        max: planned || null,
        value: planned ? measured : null,
        "aria-label": "Progress of the job",
      }),
    facing &&
      h(
        "p",
        { class: "number" },
        now.due_at
          ? `${planned ? `Measurement ${Math.min(measured + 1, planned)} of ${planned}. ` : ""}Result ${moment(now.due_at)}`
          : `Result ${number(now.planned_seconds)} s after a worker takes the job`,
      ),
    h("p", { class: "muted" }, facing ? PHASES[now.state] : now.message),
    now.state === "failed" &&
      notice(
        "bad",
        h("p", { class: "next" }, "Submit another job, or ask the curator to check the worker's log."),
      ),
    request(now),
  );
}

function periodsInWords(periods) {
  return periods
    .map(({ label, version }) => (version > 1 ? `${label} (version ${version})` : label))
    .join(", ");
}

function request(now) {
  const asked = now.request;
  return facts([
    ["Cost", now.rehearsal ? "free: a rehearsal" : `${amount(now.cost)}, ${delta(now.cost.delta)}`],
    [
      "Asked for",
      `${now.asked_for}${asked.kind ? "" : `, k-${asked.objective ?? "means"}`}, ε ${number(asked.epsilon)}`,
    ],
    ...(asked.kind
      ? []
      : [
          [
            "Algorithm",
            `${now.algorithm}${(asked.algorithm ?? "auto") === "auto" ? " (chosen by auto)" : ""}`,
          ],
        ]),
    now.periods && ["Periods", periodsInWords(now.periods)],
    now.version > 1 && ["Version of the rows", String(now.version)],
    ...chosenFacts(asked),
  ]);
}

function shown(now, result, receipt, me) {
  if (result.findings) return findingsView(now, result, receipt, me.role === "curator");
  const more = askMore(now, result.centres.length, Boolean(result.range));
  const view = result.range ? openResultView : singleResultView;
  return [view(now, result, receipt, more.about), more.element];
}

const rehearsed = ({ request: { rehearse_on: job } }) =>
  job
    ? [
        "A rehearsal on the made-up rows of ",
        h("a", { href: `#/jobs/${job}` }, `job ${job.slice(0, 8)}`),
        ": it says nothing new about the data.",
      ]
    : "A rehearsal on synthetic rows: it says nothing about the data.";

async function released(place, now, me) {
  const sees = me.role !== "auditor";
  try {
    const [result, receipt, axes] = await Promise.all([
      sees && get(`/v1/jobs/${now.id}/result`),
      get(`/v1/jobs/${now.id}/receipt`),
      sees && get(`/v1/jobs/${now.id}/axes`),
    ]);
    replace(
      place,
      now.rehearsal && notice("warn", h("p", {}, rehearsed(now))),
      sees
        ? shown(now, result, { ...receipt, axes }, me)
        : notice("", h("p", {}, "Auditors read receipts; results are for the analyst and the curator.")),
      receiptView(receipt),
    );
  } catch (error) {
    replace(place, explain(error));
  }
}
