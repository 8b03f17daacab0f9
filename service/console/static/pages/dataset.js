// One dataset: what is public about it, its budget, and (for its curator) data, grants, ledger, jobs, audit.

import { all, download, get, pages, patch, post, put, remove } from "../api.js";
import { askDataset } from "../jobs/ask-more.js";
import { columnTable } from "../datasets/columns.js";
import { listingCard } from "../datasets/listing.js";
import { correct, draftCard, periods, UNITS } from "../datasets/periods.js";
import { populationCard } from "../datasets/population.js";
import { announce, h, replace, toast } from "../dom.js";
import {
  budgetFields,
  decimal,
  field,
  form,
  guard,
  input,
  isNumber,
  isWhole,
  numberOf,
  select,
  submit,
} from "../forms.js";
import { amount, COUNT, delta, moment, number, overrunsInWords, plural, sentence } from "../format.js";
import { alone } from "../datasets/proposals.js";
import { publicRows, publicRowsCard } from "../datasets/public-rows.js";
import { readingEditor, readingWords } from "../datasets/reading.js";
import {
  button,
  confirm,
  dialog,
  explain,
  facts,
  gauge,
  growing,
  notice,
  state,
  table,
  tag,
} from "../widgets.js";
import { keepsResults, questionsBox, readTerms, termFields, termsInWords } from "../datasets/terms.js";
import { workingCard, workingList } from "../datasets/working-bounds.js";
import { auditList } from "./audit.js";
import { shape } from "./datasets.js";
import { jobTable, jobWords } from "./jobs.js";
import { sites } from "./sites.js";
import { lookBeforeSeal, uploadReport, uploader } from "./upload.js";

const MOST_EDITED = 50;
// The label of the only period of a dataset without periods.
const WHOLE = "";
const TABS = [
  ["", "Overview"],
  ["periods", "Periods"],
  ["grants", "Grants"],
  ["sites", "Sites"],
  ["ledger", "Ledger"],
  ["jobs", "Jobs"],
  ["audit", "Audit"],
];

const TABS_OF = {
  curator: TABS.map(([key]) => key),
  analyst: ["", "periods", "sites", "ledger", "jobs"],
  auditor: ["", "periods", "sites", "ledger", "jobs", "audit"],
};

export async function dataset(context, name, tab = "") {
  const found = await get(`/v1/datasets/${name}`);
  const curator = context.me.role === "curator";
  const shown = TABS.filter(
    ([key]) => TABS_OF[context.me.role].includes(key) && (key !== "periods" || found.unit),
  );
  const sections = {
    "": curator ? overview : publicFacts,
    periods,
    grants,
    sites,
    ledger,
    jobs: datasetJobs,
    audit: datasetAudit,
  };
  const here = shown.some(([key]) => key === tab) ? tab : "";
  const content = h(
    "div",
    { class: "stack loose" },
    h(
      "div",
      { class: "head" },
      h(
        "div",
        { class: "stack tight" },
        h("p", { class: "crumb" }, h("a", { href: "#/datasets" }, "Datasets")),
        h("div", { class: "row" }, h("h1", {}, name), state(found.state)),
        h("p", { class: "muted" }, found.description || shape(found)),
      ),
      h(
        "div",
        { class: "row" },
        context.me.role !== "analyst" &&
          h("a", { class: "button", href: `#/datasets/${name}/report` }, "Report for data protection"),
        found.state === "sealed" &&
          context.me.role !== "auditor" &&
          h(
            "a",
            { class: curator ? "button" : "button primary", href: `#/datasets/${name}/job` },
            "Plan a job",
          ),
      ),
    ),
    h(
      "nav",
      { class: "tabs", "aria-label": `About ${name}` },
      shown.map(([key, words]) =>
        h(
          "a",
          { href: `#/datasets/${name}${key && `/${key}`}`, "aria-current": key === here ? "page" : null },
          words,
        ),
      ),
    ),
    await sections[here](context, found),
  );
  return { title: name, content };
}

function describe(found) {
  const bounds = found.bounds;
  const box = bounds.box;
  return facts([
    [
      "Records",
      `about ${COUNT.format(found.size)}${found.unit ? " in a period" : ""} (public order of magnitude; the exact number is private)`,
    ],
    [
      "Protects",
      found.unit
        ? UNITS[found.unit]
        : found.privacy_unit === "person"
          ? `each person, with at most ${plural(found.rows_per_person, "row")}`
          : "each single row",
    ],
    [
      "Kind",
      {
        dense: "rows of numbers",
        sparse: "sparse rows",
        ids: "ids of public sites",
        table: "a table with columns of different kinds",
      }[found.kind],
    ],
    box && ["Columns", columnList(found, box)],
    bounds.ball && [
      "Bounds",
      `within ${number(bounds.ball.radius)} of ` +
        `${bounds.ball.centre?.some(Boolean) ? "a public centre" : "the origin"}, ` +
        `${plural(found.dimension, "column")}`,
    ],
    bounds.sparse && [
      "Bounds",
      `within ${number(bounds.sparse.radius)} of the origin, ${plural(found.dimension, "column")}`,
    ],
    found.working_bounds && ["Working bounds", workingList(found)],
    found.public_rows && ["Public rows", publicRows(found)],
    found.scaling &&
      box && ["Scaling", found.scaling === "unit" ? "every column counts the same" : "columns as they are"],
    found.reading.encoding && ["Text files", readingWords(found.reading)],
    ["Accountant", found.accountant],
    [
      "Each job",
      `asks for ε ${number(found.least_epsilon)} or more; at most ` +
        `${number(found.jobs_per_hour)} an hour from one analyst`,
    ],
    found.size_warning && ["Declared size", found.size_warning],
    found.overruns !== null && ["Overruns", overrunsInWords(found.overruns)],
    [
      "Results appear",
      found.planned_release
        ? "at planned times, so that run times reveal nothing"
        : "as soon as they are ready",
    ],
    ["Owner", found.owner],
    ["Created", moment(found.created_at)],
    found.corrected_at && ["Corrected", [moment(found.corrected_at), ` (version ${found.version})`]],
  ]);
}

function columnList(found, box) {
  const most = 12;
  const at = (list, i) => (Array.isArray(list) ? list[i] : list);
  const lines = (found.columns ?? [])
    .slice(0, most)
    .map((name, i) =>
      h("li", {}, h("code", {}, name), ` from ${number(at(box.low, i))} to ${number(at(box.high, i))}`),
    );
  const more = found.dimension - lines.length;
  return h(
    "ul",
    { class: "plain" },
    lines,
    more > 0 && h("li", { class: "muted" }, `and ${plural(more, "more column", "more columns")}`),
  );
}

function warnings(found) {
  return found.warnings.map((words) => notice("warn", h("p", {}, sentence(words))));
}

function tableCard(found) {
  return h(
    "section",
    { class: "card stack" },
    h("h2", {}, "Columns"),
    columnTable(found.table),
    h(
      "p",
      { class: "small muted" },
      "A column's weight is how far apart two records are that lie at its opposite ends, or " +
        "that have different levels. A job may choose its own columns and weights.",
    ),
  );
}

async function publicFacts(context, found) {
  const { me } = context;
  return [
    publicHalves(found, context),
    me.role !== "auditor" && (await askDataset(found)),
    found.table && tableCard(found),
  ];
}

function publicHalves(found, context) {
  return h(
    "div",
    { class: "halves" },
    h("section", { class: "card stack" }, h("h2", {}, "What is public"), describe(found), warnings(found)),
    h(
      "div",
      { class: "stack" },
      found.cap &&
        h(
          "section",
          { class: "card stack" },
          h(
            "div",
            { class: "row apart" },
            h("h2", {}, "Your cap"),
            h("a", { class: "button small", href: `#/datasets/${found.name}/request` }, "Request more"),
          ),
          gauge(found.cap, { label: "Your cap" }),
          termsInWords(found.grant),
          h(
            "p",
            { class: "small muted" },
            `${delta(found.cap.remaining.delta)} of ${delta(found.cap.total.delta)} remaining`,
          ),
        ),
      h(
        "section",
        { class: "card stack" },
        h(
          "h2",
          {},
          found.unit && found.unit !== "person"
            ? "Budget of the period with the least left"
            : "The dataset's budget",
        ),
        gauge(found.budget, { label: "Budget" }),
        h(
          "p",
          { class: "small muted" },
          `Shared by everybody with a grant. ${delta(found.budget.remaining.delta)} of ` +
            `${delta(found.budget.total.delta)} remaining.`,
        ),
      ),
      populationCard(found, context),
    ),
  );
}

async function overview(context, found) {
  const { reload } = context;
  const place = h("div", { class: "stack" });
  const draft = found.state === "draft";
  const byPeriod = found.unit && found.unit !== "person";
  const listing = found.state === "sealed" && (await get(`/v1/datasets/${found.name}/listing`));
  const look =
    draft &&
    found.upload &&
    h(
      "section",
      { class: "card stack" },
      h("h2", {}, "Check before you seal"),
      lookBeforeSeal(found, reload),
    );
  const editor = found.table
    ? h("a", { class: "button small", href: `#/datasets/${found.name}/edit` }, "Edit")
    : button("Edit", () => edit(found, reload), "small");
  const halves = h(
    "div",
    { class: "halves" },
    h(
      "div",
      { class: "stack loose" },
      draft &&
        found.unit &&
        h(
          "section",
          { class: "card stack" },
          h("h2", {}, "Add the first period"),
          h("p", { class: "muted" }, "Rows belong to periods. Jobs can run once one of them is sealed."),
          h(
            "div",
            {},
            h("a", { class: "button primary", href: `#/datasets/${found.name}/periods` }, "Periods"),
          ),
        ),
      draft &&
        !found.unit &&
        h(
          "section",
          { class: "card stack" },
          h("h2", {}, found.upload ? "Upload other rows" : "Upload the rows"),
          uploader(found, reload, place),
          place,
        ),
      !draft &&
        found.upload &&
        h(
          "section",
          { class: "card stack" },
          h(
            "div",
            { class: "row apart" },
            h("h2", {}, "The upload"),
            found.state === "sealed" &&
              !found.correction &&
              button("Correct", () => correct(found, { label: WHOLE }, reload), "small"),
          ),
          uploadReport(found.upload),
        ),
      h(
        "section",
        { class: "card stack" },
        h("div", { class: "row apart" }, h("h2", {}, "What is public"), draft && editor),
        describe(found),
        warnings(found),
      ),
    ),
    h(
      "div",
      { class: "stack loose" },
      h(
        "section",
        { class: "card stack" },
        h(
          "div",
          { class: "row apart" },
          h("h2", {}, byPeriod ? "Budget of the period with the least left" : "Budget"),
          !byPeriod && found.state !== "retired" && button("Raise", () => raise(found, reload), "small"),
        ),
        gauge(found.budget, { label: "Budget" }),
        h(
          "p",
          { class: "small muted" },
          `${delta(found.budget.spent.delta)} spent, ${delta(found.budget.reserved.delta)} ` +
            `reserved, ${delta(found.budget.remaining.delta)} of ` +
            `${delta(found.budget.total.delta)} remaining.`,
        ),
      ),
      populationCard(found, context),
      draft &&
        h(
          "section",
          { class: "card stack" },
          h("h2", {}, "Discard"),
          h("p", { class: "muted" }, "Deletes this draft and its rows. The name can be used again."),
          h(
            "div",
            {},
            button("Discard this draft", () => discard(found), "danger"),
          ),
        ),
      listing && listingCard(found, listing, reload),
      h(
        "section",
        { class: "card stack" },
        h("h2", {}, "Hand over"),
        h("p", { class: "muted" }, "Makes another curator the owner, with the grants and the ledger."),
        h(
          "div",
          {},
          button("Hand this dataset over", () => handOver(found)),
        ),
      ),
      found.state === "sealed" &&
        h(
          "section",
          { class: "card stack" },
          h("h2", {}, "Retire"),
          h(
            "p",
            { class: "muted" },
            "Deletes the rows permanently. The ledger, receipts and results are kept.",
          ),
          h(
            "div",
            {},
            button("Retire this dataset", () => retire(found, reload), "danger"),
          ),
        ),
    ),
  );
  return [
    look,
    found.correction && draftCard(found, { label: WHOLE, correction: found.correction }, reload),
    halves,
    workingCard(found, reload),
    publicRowsCard(found, reload),
    await askDataset(found),
    found.table && tableCard(found),
  ];
}

// Public facts of a draft that are most often corrected; other changes are a matter of a new draft.
function edit(found, reload) {
  const box = found.bounds.box;
  const bound = (key, words, i) => {
    const control = input(key, {
      inputmode: "decimal",
      value: String(box[key][i]),
      "aria-label": `${words} of ${found.columns[i]}`,
    });
    return h("td", { "data-label": words }, control, guard(control, isNumber("Enter a number.")));
  };
  const reading = readingEditor(found.reading);
  reading.named(Boolean(found.columns));
  const rows =
    box && found.dimension <= MOST_EDITED
      ? found.columns.map((name, i) =>
          h(
            "tr",
            {},
            h("td", { "data-label": "Column" }, h("code", {}, name)),
            bound("low", "Low", i),
            bound("high", "High", i),
          ),
        )
      : [];
  dialog(`Edit ${found.name}`, (close) =>
    form(
      {},
      [
        found.upload &&
          notice(
            "warn",
            h(
              "p",
              {},
              "You have looked at a report on the rows. Whatever you change now is marked " +
                "“changed after a look at the rows” for every analyst. New bounds, or another " +
                "way to read the file, also delete the uploaded rows.",
            ),
          ),
        field(
          "Description",
          h("textarea", { name: "description", rows: "2", maxlength: "2000" }, found.description),
        ),
        field("Size", input("size", { inputmode: "numeric", value: String(found.size) }), {
          check: isWhole("Enter about how many records there are."),
        }),
        rows.length > 0 &&
          h(
            "table",
            { class: "fold" },
            h(
              "thead",
              {},
              h(
                "tr",
                {},
                ["Column", "Low", "High"].map((name) => h("th", { scope: "col" }, name)),
              ),
            ),
            h("tbody", {}, rows),
          ),
        h("h3", {}, "How the file is written"),
        reading.element,
        h(
          "div",
          { class: "row end" },
          h("button", { type: "button", on: { click: close } }, "Cancel"),
          submit("Save the changes"),
        ),
      ],
      async (data) => {
        const changes = { description: data.get("description").trim(), size: Number(data.get("size")) };
        if (rows.length)
          changes.bounds = {
            box: { low: data.getAll("low").map(numberOf), high: data.getAll("high").map(numberOf) },
          };
        if (reading.isChanged()) changes.reading = reading.read();
        await patch(`/v1/datasets/${found.name}`, changes);
        close();
        toast("The changes are saved.");
        await reload();
      },
    ),
  );
}

function discard(found) {
  confirm(
    `Discard ${found.name}?`,
    "The draft, its rows and the report on them are deleted.",
    "Discard it",
    async () => {
      await remove(`/v1/datasets/${found.name}`);
      toast(`${found.name} is discarded.`);
      location.hash = "#/datasets";
    },
  );
}

function raise(found, reload) {
  dialog(`Raise the budget of ${found.name}`, (close) => [
    form(
      {},
      [
        h(
          "p",
          {},
          `Now ε ${number(found.budget.declared.epsilon)} and ` +
            `${delta(found.budget.declared.delta)} in total. The total can only be raised, and ` +
            "raising it weakens the protection of the people in the data.",
        ),
        budgetFields({
          epsilon: found.budget.declared.epsilon,
          delta: found.budget.declared.delta,
          hintEpsilon: "The new total.",
        }),
        h(
          "div",
          { class: "row end" },
          h("button", { type: "button", on: { click: close } }, "Cancel"),
          submit("Raise the budget"),
        ),
      ],
      async (data) => {
        const total = { epsilon: decimal(data.get("epsilon")), delta: decimal(data.get("delta")) };
        const proposal = { dataset: found.name, about: "total", ...total };
        await alone(() => post(`/v1/datasets/${found.name}/budget`, total), proposal, close);
        close();
        toast("The budget is raised. This is recorded in the audit log.");
        await reload();
      },
    ),
  ]);
}

async function handOver(found) {
  const curators = (await all("/v1/principals?role=curator"))
    .filter((each) => !each.disabled_at && each.name !== found.owner)
    .map((each) => [each.name, each.name]);
  dialog(`Hand ${found.name} over`, (close) => {
    if (!curators.length)
      return [
        h("p", {}, "There is no other curator yet."),
        h(
          "div",
          { class: "row end" },
          h("a", { class: "button primary", href: "#/people", on: { click: close } }, "Create one"),
        ),
      ];
    return form(
      {},
      [
        h(
          "p",
          {},
          "Grants, caps and the ledger stay as they are. You can then no longer see the dataset, and your " +
            "own queued jobs on it are withdrawn; the results of your own jobs stay yours. Only the new " +
            "owner or an operator can hand it back.",
        ),
        field("New owner", select("curator", curators)),
        h(
          "div",
          { class: "row end" },
          h("button", { type: "button", on: { click: close } }, "Cancel"),
          submit("Hand over", "danger"),
        ),
      ],
      async (data) => {
        await post(`/v1/datasets/${found.name}/owner`, { curator: data.get("curator") });
        close();
        toast(`${data.get("curator")} now owns ${found.name}. This is recorded in the audit log.`);
        location.hash = "#/datasets";
      },
    );
  });
}

function retire(found, reload) {
  dialog(`Retire ${found.name}?`, (close) => {
    const typed = input("typed");
    const go = submit("Delete the rows permanently", "danger");
    go.disabled = true;
    typed.addEventListener("input", () => {
      go.disabled = typed.value !== found.name;
    });
    return form(
      { "data-kept": "no" },
      [
        h(
          "p",
          {},
          "Its rows are deleted permanently. Queued jobs are cancelled and not charged. " +
            "Results and the ledger are kept.",
        ),
        field(`Type ${found.name} to confirm`, typed),
        h("div", { class: "row end" }, h("button", { type: "button", on: { click: close } }, "Keep it"), go),
      ],
      async () => {
        const done = await post(`/v1/datasets/${found.name}/retire`, {});
        close();
        toast(`${found.name} is retired; ${plural(done.voided_jobs, "queued job")} withdrawn.`);
        await reload();
      },
    );
  });
}

// Both parts of an amount, one below the other.
function both(part) {
  return [
    h("div", { class: "nowrap" }, amount(part)),
    h("div", { class: "nowrap small muted" }, delta(part.delta)),
  ];
}

async function grants({ reload }, found) {
  const [granted, principals] = await Promise.all([
    all(`/v1/datasets/${found.name}/grants`),
    all("/v1/principals"),
  ]);
  const analysts = principals.filter((each) => each.role === "analyst" && !each.disabled_at);
  const rows = granted.map((grant) => [
    [h("strong", {}, grant.analyst), termsInWords(grant)],
    grant.revoked_at ? tag("withdrawn") : both(grant.cap.total),
    both(grant.cap.spent),
    both(grant.cap.reserved),
    grant.revoked_at ? "–" : both(grant.cap.remaining),
    grant.revoked_at
      ? ""
      : h(
          "span",
          { class: "row end" },
          button("Change cap", () => setCap(found, analysts, grant, reload), "small"),
          button("Withdraw", () => withdraw(found, grant, reload), "small quiet"),
        ),
  ]);
  const headings = [
    { name: "Analyst" },
    { name: "Cap", right: true },
    { name: "Spent", right: true },
    { name: "Reserved", right: true },
    { name: "Remaining", right: true },
    { right: true },
  ];
  return h(
    "section",
    { class: "card stack" },
    h(
      "div",
      { class: "row apart" },
      h("h2", {}, "Who may use it"),
      found.state !== "retired" && button("Grant", () => setCap(found, analysts, null, reload), "primary"),
    ),
    table(headings, rows, {
      empty: "Nobody yet. A grant names an analyst and the most they may spend.",
      label: "Grants",
    }),
    h(
      "p",
      { class: "small muted" },
      "A cap is a limit, not a share that is set aside: caps may add up to more than the " +
        "budget, and the budget decides.",
    ),
  );
}

function setCap(found, analysts, grant, reload) {
  dialog(grant ? `Change cap of ${grant.analyst}` : `Grant ${found.name}`, (close) => {
    if (!grant && !analysts.length)
      return [
        h("p", {}, "There are no analysts yet."),
        h(
          "div",
          { class: "row end" },
          h("a", { class: "button primary", href: "#/people", on: { click: close } }, "Create one"),
        ),
      ];
    const who = grant
      ? null
      : field(
          "Analyst",
          select(
            "analyst",
            analysts.map((each) => [each.name, each.name]),
          ),
        );
    const present = grant ? grant.cap.declared : found.budget.declared;
    const questions = questionsBox(grant?.kinds);
    return form(
      {},
      [
        who,
        budgetFields({
          epsilon: present.epsilon,
          delta: present.delta,
          hintEpsilon: "The most they may spend.",
          hintDelta: "0 allows pure differential privacy only.",
        }),
        questions.element,
        ...termFields(grant),
        keepsResults(grant),
        h(
          "div",
          { class: "row end" },
          h("button", { type: "button", on: { click: close } }, "Cancel"),
          submit(grant ? "Change cap" : "Grant"),
        ),
      ],
      async (data) => {
        const name = grant ? grant.analyst : data.get("analyst");
        const wanted = {
          epsilon: decimal(data.get("epsilon")),
          delta: decimal(data.get("delta")),
          ...readTerms(data),
          keeps_results: data.has("keeps_results"),
          ...(await questions.read(data)),
        };
        const proposal = { dataset: found.name, analyst: name, ...wanted };
        await alone(() => put(`/v1/datasets/${found.name}/grants/${name}`, wanted), proposal, close);
        close();
        const total = found.budget.declared;
        const above =
          numberOf(data.get("epsilon")) > Number(total.epsilon) ||
          numberOf(data.get("delta")) > Number(total.delta);
        toast(
          `${name} may now use ${found.name}.` +
            (above
              ? ` The cap is above the dataset's total of ε ${number(total.epsilon)} and ` +
                `${delta(total.delta)}, which still applies.`
              : ""),
        );
        await reload();
      },
    );
  });
}

function withdraw(found, grant, reload) {
  confirm(
    `Withdraw the grant of ${grant.analyst}?`,
    "They can no longer use the dataset, and their queued jobs are cancelled. What they spent stays spent.",
    "Withdraw it",
    async () => {
      await remove(`/v1/datasets/${found.name}/grants/${grant.analyst}`);
      toast("The grant is withdrawn.");
      await reload();
    },
  );
}

const KINDS = {
  open: ["opened the account", ""],
  raise: ["raised the total", ""],
  cap: ["set a cap", ""],
  reserve: ["reserved", "warn"],
  charge: ["charged", "good"],
  void: ["given back", ""],
};

async function ledger({ me }, found) {
  const whole = me.role !== "analyst";
  const list = growing(pages(`/v1/datasets/${found.name}/ledger`, 100), (items) => ledgerTable(items, whole));
  await list.more();
  const verdict = h("div", { "aria-live": "polite" });
  const verify = async () => {
    const report = await post(`/v1/datasets/${found.name}/ledger/verify`, {});
    const words = report.ok
      ? `All ${plural(report.entries, "entry", "entries")} check out: the chain of hashes is ` +
        "whole, every balance adds up and every job has its charge."
      : `The ledger does not add up: ${report.faults.join("; ")}.`;
    replace(
      verdict,
      notice(
        report.ok ? "good" : "bad",
        h("p", {}, words),
        h("p", { class: "small" }, "Head of the chain: ", h("code", {}, report.head)),
      ),
    );
    announce(words);
  };
  return h(
    "section",
    { class: "card stack" },
    h(
      "div",
      { class: "row apart" },
      h("h2", {}, whole ? "Every reservation, charge and cancellation" : "Your entries"),
      h(
        "div",
        { class: "row" },
        whole &&
          button(
            "Verify",
            async () => {
              try {
                await verify();
              } catch (error) {
                replace(verdict, explain(error));
              }
            },
            "small",
          ),
        button(
          "Download CSV",
          () => download(`/v1/datasets/${found.name}/ledger`, "text/csv", `${found.name}-ledger.csv`),
          "small",
        ),
      ),
    ),
    verdict,
    list.place,
  );
}

function ledgerTable(items, curator) {
  const headings = [
    { name: "No.", right: true },
    { name: "When" },
    { name: "What" },
    { name: "Amount", right: true },
    { name: "Delta", right: true },
    { name: "Analyst" },
    { name: "Job" },
    items.some((entry) => entry.periods) && { name: "Periods" },
    curator && { name: "Hash" },
  ].filter(Boolean);
  const rows = items.map((entry) => {
    const [words, kind] = KINDS[entry.kind] ?? [entry.kind, ""];
    const cells = [
      COUNT.format(entry.sequence),
      h("span", { class: "nowrap" }, moment(entry.at)),
      tag(words, kind),
      h("span", { class: "nowrap" }, amount(entry.amount)),
      h("span", { class: "nowrap" }, number(entry.amount.delta, 3)),
      entry.analyst ?? "–",
      entry.job ? h("a", { href: `#/jobs/${entry.job}` }, h("code", {}, entry.job.slice(0, 8))) : "–",
    ];
    if (items.some((each) => each.periods)) cells.push(entry.periods?.join(", ") ?? "–");
    if (curator) cells.push(entry.hash ? h("code", { title: entry.hash }, entry.hash.slice(0, 10)) : "–");
    return cells;
  });
  return table(headings, rows, { label: "Ledger" });
}

async function datasetJobs({ me }, found) {
  const list = growing(
    pages(`/v1/jobs?dataset=${found.name}`, 50),
    (items) => jobTable(items, { curator: me.role !== "analyst", dataset: false }),
    { words: jobWords, find: "Find a job" },
  );
  await list.more();
  return h("section", { class: "card stack" }, h("h2", {}, "Jobs on this dataset"), list.place);
}

async function datasetAudit(_context, found) {
  const list = await auditList(() => found.name);
  return h("section", { class: "card stack" }, h("h2", {}, "Audit log"), list.choice, list.place);
}
