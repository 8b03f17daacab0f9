// The pieces that pages are made of: tables, dialogs, gauges, notices.

import { inWords, nextStep, Problem } from "./api.js";
import { filters, setFilter } from "./address.js";
import { announce, freshId, h, replace, toast } from "./dom.js";
import { amount, value } from "./format.js";
import { forget, keepForms, remember } from "./kept.js";

const CLOSED = "closed"; // by a button of the dialog

export function notice(kind, ...children) {
  return h("div", { class: `notice ${kind}` }, children);
}

// A problem in one sentence, and what to do next.
export function explain(error, extra) {
  const next = error instanceof Problem ? nextStep(error) : "";
  return h(
    "div",
    { class: "notice bad", role: "alert" },
    h("p", {}, inWords(error)),
    next && h("p", { class: "next" }, next),
    extra,
  );
}

export function button(words, act, kind = "") {
  const made = h("button", { type: "button", class: kind }, words);
  made.addEventListener("click", async () => {
    if (made.disabled) return;
    made.disabled = true;
    try {
      await act(made);
    } catch (error) {
      if (error.name !== "AbortError")
        toast(`${inWords(error)} ${error instanceof Problem ? nextStep(error) : ""}`, "bad");
    } finally {
      made.disabled = false;
    }
  });
  return made;
}

export function copyButton(text, words = "Copy") {
  return button(
    words,
    async (made) => {
      const content = typeof text === "function" ? text() : text;
      await copy(content);
      made.textContent = "Copied";
      announce("Copied");
      setTimeout(() => made.replaceChildren(words), 2000);
    },
    "small",
  );
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without a secure origin there is no clipboard: select a copy of the text and copy that.
    const area = h("textarea", { props: { value: text }, class: "unseen", "aria-hidden": "true" });
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/**
 * @param {{name?: string, unseen?: string, right?: boolean}[]} headings
 * @param {any[][]} rows
 * @param {{empty?: string, label?: string, fold?: boolean}} [options]
 */
export function table(headings, rows, { empty = "Nothing here yet.", label, fold = true } = {}) {
  if (!rows.length) return h("p", { class: "muted" }, empty);
  const head = h(
    "tr",
    {},
    headings.map((each) =>
      h(
        "th",
        { scope: "col", class: each.right ? "right" : null },
        each.name ? each.name : h("span", { class: "unseen" }, each.unseen ?? "Actions"),
      ),
    ),
  );
  const body = rows.map((cells) =>
    h(
      "tr",
      {},
      cells.map((cell, i) =>
        h("td", { class: headings[i].right ? "right" : null, "data-label": headings[i].name ?? "" }, cell),
      ),
    ),
  );
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": label ?? "Table" },
    h("table", { class: fold ? "fold" : null }, h("thead", {}, head), h("tbody", {}, body)),
  );
}

const FEW_ITEMS = 8;

/**
 * A list that grows page by page.
 * @param {{done: boolean, next: () => Promise<any[]>}} list
 * @param {(items: any[]) => any} draw
 * @param {{words?: (item: any) => string, find?: string}} [options] `words` is the text by which an item is
 *   found
 */
export function growing(list, draw, { words, find = "Find" } = {}) {
  const items = [];
  const results = h("div", { class: "stack" });
  const first = words ? (filters().get("find") ?? "") : "";
  const search = h("input", {
    type: "search",
    "aria-label": find,
    placeholder: find,
    hidden: !first,
    props: { value: first },
  });
  const show = () => {
    const wanted = search.value.trim().toLowerCase();
    const found = wanted ? items.filter((each) => words(each).toLowerCase().includes(wanted)) : items;
    replace(
      results,
      wanted && !found.length ? h("p", { class: "muted" }, "Nothing found.") : draw(found),
      !list.done && h("div", {}, button("Show more", more)),
    );
    if (words && (items.length > FEW_ITEMS || !list.done)) search.hidden = false;
  };
  let rest = null;
  const readAll = async () => {
    while (!list.done) items.push(...(await list.next()));
  };
  const loadRest = () => {
    rest ??= readAll();
    return rest;
  };
  const more = async () => {
    items.push(...(await list.next()));
    if (search.value) await loadRest();
    show();
  };
  search.addEventListener("input", async () => {
    setFilter("find", search.value.trim());
    show();
    try {
      await loadRest();
      show();
    } catch (error) {
      rest = null;
      toast(inWords(error), "bad");
    }
  });
  return { place: h("div", { class: "stack" }, search, results), more };
}

/**
 * @param {any} budget
 * @param {{label?: string, asked?: number | null}} [options]
 */
export function gauge(budget, { label, asked = null } = {}) {
  const total = value(budget.total);
  const share = (x) => `${total > 0 ? Math.min(100, Math.max(0, (100 * x) / total)) : 0}%`;
  const spent = value(budget.spent);
  const reserved = value(budget.reserved);
  const left = value(budget.remaining);
  const wanted = asked === null ? 0 : Math.min(asked, left);
  const words =
    `${label}: ${amount(budget.remaining)} of ${amount(budget.total)} remaining, ` +
    `${amount(budget.spent)} spent, ${amount(budget.reserved)} reserved`;
  const entry = (name, kind, figure) => h("div", {}, h("dt", { class: kind }, name), h("dd", {}, figure));
  return h(
    "div",
    { class: "gauge" },
    h(
      "div",
      { class: "track", role: "img", "aria-label": words },
      h("span", { class: "spent", vars: { share: share(spent) } }),
      h("span", { class: "reserved", vars: { share: share(reserved) } }),
      asked !== null && h("span", { class: asked > left ? "over" : "asked", vars: { share: share(wanted) } }),
    ),
    h(
      "dl",
      { class: "legend" },
      entry("Spent", "spent-key", amount(budget.spent)),
      entry("Reserved", "reserved-key", amount(budget.reserved)),
      entry("Remaining", "left-key", amount(budget.remaining)),
      h("div", { class: "total" }, h("dt", {}, "Total"), h("dd", {}, amount(budget.total))),
    ),
  );
}

export function facts(entries) {
  return h(
    "dl",
    { class: "facts" },
    entries.filter(Boolean).map(([name, content]) => [h("dt", {}, name), h("dd", {}, content)]),
  );
}

export function figures(entries) {
  return h(
    "dl",
    { class: "figures" },
    entries.map(([name, figure, small]) =>
      h("div", {}, h("dt", {}, name), h("dd", {}, figure, small && h("small", {}, small))),
    ),
  );
}

export function tag(words, kind = "") {
  return h("span", { class: `tag ${kind}` }, words);
}

const STATES = {
  draft: ["draft", "warn"],
  sealed: ["sealed", "good"],
  retired: ["retired", ""],
  queued: ["queued", "warn live"],
  running: ["running", "good live"],
  succeeded: ["succeeded", "good"],
  failed: ["failed", "bad"],
  cancelled: ["cancelled", ""],
};

export function state(name) {
  const [words, kind] = STATES[name] ?? [name, ""];
  return tag(words, kind);
}

// A modal window: keeps the focus inside, closes with Escape, gives the focus back. What was typed into its form is
// kept when it is closed by anything but its own buttons.
export function dialog(title, build) {
  const id = freshId("dialog");
  const opener = document.activeElement;
  const box = h("dialog", { "aria-labelledby": id });
  const close = () => box.close(CLOSED);
  box.append(h("div", { class: "stack" }, h("h2", { id }, title), build(close)));
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Tab") return;
    /** @type {NodeListOf<HTMLButtonElement>} */
    const all = box.querySelectorAll("a[href], button, input, select, textarea, [tabindex]");
    const stops = [...all].filter((each) => !each.disabled && each.offsetParent !== null);
    const edge = event.shiftKey ? stops[0] : stops[stops.length - 1];
    if (document.activeElement === edge || !box.contains(document.activeElement)) {
      event.preventDefault();
      (event.shiftKey ? stops[stops.length - 1] : stops[0]).focus();
    }
  });
  const forms = () => [...box.querySelectorAll("form")];
  box.addEventListener("close", () => {
    if (box.returnValue === CLOSED) forms().forEach(forget);
    else remember();
    box.remove();
    if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
  });
  document.body.append(box);
  box.showModal();
  keepForms(box, () => {
    close();
    dialog(title, build);
  });
  return box;
}

export function showKey(title, key, whose) {
  dialog(title, (close) => [
    h(
      "p",
      {},
      `This is ${whose}'s key. It is shown only once: copy it now and send it through a secure channel.`,
    ),
    h("code", { class: "key" }, key),
    h(
      "div",
      { class: "row end" },
      copyButton(key, "Copy the key"),
      h("button", { type: "button", class: "primary", on: { click: close } }, "Done"),
    ),
  ]);
}

export function confirm(title, words, action, act, { dismiss = "Cancel" } = {}) {
  dialog(title, (close) => [
    h("p", {}, words),
    h(
      "div",
      { class: "row end" },
      h("button", { type: "button", on: { click: close } }, dismiss),
      button(
        action,
        async () => {
          await act();
          close();
        },
        "danger",
      ),
    ),
  ]);
}
