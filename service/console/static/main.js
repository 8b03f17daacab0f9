// Starts the console: who is signed in, which page the address names, and the bar above it.

import { get, lacksResult, offline, Problem, session, whenUnauthorized } from "./api.js";
import { place } from "./address.js";
import { announce, h, replace, s } from "./dom.js";
import { clear, hasChanges, keepFor, keepForms, remember } from "./kept.js";
import { signIn } from "./pages/sign-in.js";
import { button, confirm, explain } from "./widgets.js";

const EVERYBODY = ["curator", "analyst", "auditor", "operator"];
const READERS = ["curator", "analyst", "auditor"];
const USERS = ["curator", "analyst"];
const CURATORS = ["curator"];
const OVERSEERS = ["curator", "auditor"];

// Each page: address, who may see it, its heading while it loads, what builds it. The first that matches is
// shown. Pages are loaded when they are needed, so that the first one is there soon.
/**
 * Address, roles that may see the page, its heading, and its script.
 * @type {[RegExp, string[], (name?: string) => string, () => Promise<any>][]}
 */
const ROUTES = [
  [/^#\/datasets$/, READERS, () => "Datasets", () => import("./pages/datasets.js").then((m) => m.datasets)],
  [
    /^#\/datasets\/new$/,
    CURATORS,
    () => "New dataset",
    () => import("./pages/create.js").then((m) => m.createDataset),
  ],
  [
    /^#\/datasets\/([a-z0-9._-]+)\/job$/,
    USERS,
    () => "Plan a job",
    () => import("./pages/new-job.js").then((m) => m.newJob),
  ],
  [
    /^#\/datasets\/([a-z0-9._-]+)\/edit$/,
    CURATORS,
    (name) => `Edit ${name}`,
    () => import("./pages/edit.js").then((m) => m.editDraft),
  ],
  [
    /^#\/datasets\/([a-z0-9._-]+)(?:\/(periods|grants|sites|ledger|jobs|audit))?$/,
    READERS,
    (name) => name,
    () => import("./pages/dataset.js").then((m) => m.dataset),
  ],
  [
    /^#\/catalogue$/,
    READERS,
    () => "Catalogue",
    () => import("./pages/catalogue.js").then((m) => m.catalogue),
  ],
  [
    /^#\/datasets\/([a-z0-9._-]+)\/request$/,
    ["analyst"],
    (name) => `Request ${name}`,
    () => import("./pages/requests.js").then((m) => m.requestAccess),
  ],
  [/^#\/requests$/, READERS, () => "Requests", () => import("./pages/requests.js").then((m) => m.requests)],
  [
    /^#\/populations$/,
    OVERSEERS,
    () => "Populations",
    () => import("./pages/populations.js").then((m) => m.populations),
  ],
  [
    /^#\/populations\/([a-z0-9._-]+)$/,
    OVERSEERS,
    (name) => name,
    () => import("./pages/populations.js").then((m) => m.population),
  ],
  [/^#\/jobs$/, READERS, () => "Jobs", () => import("./pages/jobs.js").then((m) => m.jobs)],
  [
    /^#\/jobs\/([0-9a-f-]{36}|latest)$/,
    READERS,
    () => "Job",
    () => import("./pages/job.js").then((m) => m.job),
  ],
  [
    /^#\/jobs\/([0-9a-f-]{36})\/report$/,
    READERS,
    () => "Report",
    () => import("./pages/report.js").then((m) => m.report),
  ],
  [
    /^#\/compare\/([0-9a-f-]{36})\/([0-9a-f-]{36})$/,
    USERS,
    () => "Two jobs side by side",
    () => import("./pages/compare.js").then((m) => m.compare),
  ],
  [/^#\/help$/, EVERYBODY, () => "Help", () => import("./pages/help.js").then((m) => m.help)],
  [
    /^#\/help\/table$/,
    EVERYBODY,
    () => "How to prepare a table",
    () => import("./pages/help.js").then((m) => m.prepareTable),
  ],
  [
    /^#\/help\/epsilon$/,
    EVERYBODY,
    () => "What epsilon means for a person",
    () => import("./pages/help.js").then((m) => m.meaningOfEpsilon),
  ],
  [
    /^#\/datasets\/([a-z0-9._-]+)\/report$/,
    ["curator", "auditor"],
    (name) => `Report on ${name}`,
    () => import("./pages/dataset-report.js").then((m) => m.datasetReport),
  ],
  [/^#\/sessions$/, EVERYBODY, () => "Sessions", () => import("./pages/sessions.js").then((m) => m.sessions)],
  [
    /^#\/people$/,
    ["curator", "operator"],
    () => "People",
    () => import("./pages/people.js").then((m) => m.people),
  ],
  [
    /^#\/audit$/,
    ["curator", "auditor", "operator"],
    () => "Audit",
    () => import("./pages/audit.js").then((m) => m.audit),
  ],
];

const main = document.getElementById("main");
const bar = document.getElementById("bar");
let me = null;
let leaving = new AbortController();
let parting = "";

function navigation() {
  if (!me) return null;
  const entries = [
    ["#/datasets", "Datasets"],
    ["#/catalogue", "Catalogue"],
    ["#/jobs", "Jobs"],
    ["#/requests", "Requests"],
    ["#/people", "People"],
    ["#/audit", "Audit"],
    ["#/help", "Help"],
  ].filter(([to]) => ROUTES.some(([address, roles]) => address.test(to) && roles.includes(me.role)));
  const here = place();
  return h(
    "nav",
    { "aria-label": "Main" },
    entries.map(([to, words]) =>
      h(
        "a",
        {
          href: to,
          "aria-current":
            here === to || here.startsWith(`${to}/`) || (to === "#/jobs" && here.startsWith("#/compare/"))
              ? "page"
              : null,
        },
        words,
      ),
    ),
  );
}

// The first page after signing in.
function home() {
  return READERS.includes(me.role) ? "#/datasets" : "#/people";
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function themeIcon() {
  const moon = "M20 14.5A8.5 8.5 0 0 1 9.5 4 8.5 8.5 0 1 0 20 14.5Z";
  const rays = "M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6 19 19M5 19l1.4-1.4M17.6 6.4 19 5";
  const sun = [s("circle", { cx: 12, cy: 12, r: 4 }), s("path", { d: rays })];
  return s("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, isDark() ? sun : s("path", { d: moon }));
}

function themeSwitch() {
  const words = () => (isDark() ? "Light colours" : "Dark colours");
  const made = h(
    "button",
    { type: "button", class: "icon", "aria-label": words(), title: words() },
    themeIcon(),
  );
  made.addEventListener("click", () => {
    const next = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem("cairn.theme", next);
    } catch {
      // Without storage the choice lasts until the page is left.
    }
    const fresh = themeSwitch();
    made.replaceWith(fresh);
    fresh.focus();
  });
  return made;
}

async function signOut() {
  const elsewhere = await session.end();
  session.forget();
  me = null;
  replace(main); // the page that is left has nothing to keep
  clear();
  if (elsewhere) location.assign(elsewhere);
  else if (place() === "#/sign-in") show();
  else location.hash = "#/sign-in";
}

function drawBar() {
  replace(
    bar,
    h(
      "div",
      {},
      h(
        "a",
        { class: "brand", href: me ? home() : "#/sign-in" },
        h("img", { src: "/console/icon.svg", alt: "" }),
        "Cairn",
      ),
      navigation(),
      h(
        "div",
        { class: "who" },
        me &&
          h(
            "a",
            {
              href: "#/sessions",
              "aria-label": `Signed in as ${me.name}, ${me.role}: sessions`,
              "aria-current": place() === "#/sessions" ? "page" : null,
            },
            h("strong", {}, me.name),
            `, ${me.role}`,
          ),
        themeSwitch(),
        me && button("Sign out", signOut, "small"),
      ),
    ),
  );
}

function present(title, content) {
  remember();
  main.dataset.page = location.hash;
  document.title = title === "Cairn" ? title : `${title} · Cairn`;
  replace(main, content);
  keepForms(main);
  const heading = main.querySelector("h1");
  if (heading) {
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }
  window.scrollTo(0, 0);
}

function route() {
  const found = ROUTES.find(([pattern]) => pattern.test(place()));
  return found && { match: found[0].exec(place()), roles: found[1], heading: found[2], load: found[3] };
}

// The heading of a page that is still loading, so that nobody looks at an empty window.
function foretell() {
  const page = route();
  if (main.querySelector("h1") || !page) return;
  replace(main, h("h1", {}, page.heading(page.match[1])), h("p", { class: "muted" }, "Loading…"));
}

// Loads a page's script; without a connection that is a problem like any other.
async function loaded(load) {
  try {
    return await load();
  } catch {
    throw offline();
  }
}

let fetchedAhead = false;
async function fetchAhead() {
  if (fetchedAhead) return;
  fetchedAhead = true;
  for (const [, , , load] of ROUTES) await load().catch(() => {});
}

async function show() {
  leaving.abort();
  leaving = new AbortController();
  const signal = leaving.signal;
  remember();
  closeDialogs();
  if (place() === "#/signed-in") {
    location.replace(session.arrive());
    return;
  }
  if (session.mayExist && !me) {
    foretell();
    route()
      ?.load()
      .catch(() => {}); // its script, while the service is asked who this is
    try {
      await identify();
    } catch (error) {
      if (error.status === 401) session.forget();
      else {
        drawBar();
        present(
          "Cairn",
          h("div", { class: "stack" }, h("h1", {}, "The service is unavailable"), explain(error)),
        );
        return;
      }
    }
  }
  if (signal.aborted) return;
  drawBar();
  if (!me) {
    present("Sign in", signIn(signedIn, parting));
    return;
  }
  if (["", "#/", "#/sign-in"].includes(place())) {
    location.replace(home());
    return;
  }
  const chosen = route();
  if (!chosen || !chosen.roles.includes(me.role)) {
    const words = "There is no such page, or your role may not see it. Check the address.";
    present(
      "Not found",
      h("div", { class: "stack" }, h("h1", {}, "Not found"), h("p", {}, words), toDatasets()),
    );
    return;
  }
  main.setAttribute("aria-busy", "true");
  try {
    const page = await loaded(chosen.load);
    const { title, content } = await page({ me, signal, reload: show }, ...chosen.match.slice(1));
    if (signal.aborted) return;
    present(title, content);
    announce(title);
    fetchAhead();
  } catch (error) {
    if (signal.aborted || error.name === "AbortError") return;
    present(
      "Problem",
      h("div", { class: "stack" }, h("h1", {}, heading(error)), explain(error), toDatasets()),
    );
  } finally {
    if (!signal.aborted) main.removeAttribute("aria-busy");
  }
}

function toDatasets() {
  const [words, to] = home() === "#/datasets" ? ["All datasets", "#/datasets"] : ["People", "#/people"];
  return h("p", {}, h("a", { href: to }, words));
}

function heading(error) {
  if (error.status !== 404) return "Something went wrong";
  return lacksResult(error) ? "No result" : "Not found";
}

async function signedIn(key, remember) {
  await session.start(key, remember);
  try {
    await identify();
  } catch (error) {
    if (error.status === 401)
      throw new Problem(
        {
          type: "/problems/cookies",
          detail:
            "This browser did not keep the session cookie. Allow cookies for this site, then sign in again",
        },
        0,
      );
    throw error;
  }
  parting = "";
  if (!location.hash || place() === "#/sign-in") location.replace(home());
  else await show();
}

async function identify() {
  me = await get("/v1/whoami");
  keepFor(me.name);
}

whenUnauthorized((problem) => {
  if (!me) return;
  parting = problem.message;
  session.forget();
  me = null;
  show(); // the address stays, so that signing in comes back to it
});

function closeDialogs() {
  for (const each of document.querySelectorAll("dialog")) each.close();
}

function mayLeave(go) {
  if (!hasChanges()) return true;
  confirm(
    "Leave this form?",
    "It has not been sent. What you typed is kept in this tab until you sign out, and is back when you return.",
    "Leave",
    go,
    { dismiss: "Stay" },
  );
  return false;
}

document.addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a[href^='#/']") : null;
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const go = () => {
    location.hash = link.getAttribute("href");
  };
  if (link.closest("dialog") || mayLeave(go)) return;
  event.preventDefault();
});
addEventListener("beforeunload", (event) => hasChanges() && event.preventDefault());
addEventListener("pagehide", remember);

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names pages, so a jump must not change it
  (main.querySelector("h1") ?? main).focus();
});
addEventListener("hashchange", show);
show();
