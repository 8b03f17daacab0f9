// The pieces that pages are made of: fields, tables, dialogs, gauges, notices.

import { inWords, nextStep, Problem } from "./api.js";
import { announce, freshId, h, replace, toast } from "./dom.js";
import { amount, delta, number, symbol, value } from "./format.js";

export function field(label, control, { hint, id = freshId("field") } = {}) {
  control.id = id;
  const wrong = h("span", { class: "wrong", id: `${id}-wrong`, hidden: true });
  const note = hint ? h("span", { class: "hint", id: `${id}-hint` }, hint) : null;
  control.setAttribute("aria-describedby", [note && note.id, wrong.id].filter(Boolean).join(" "));
  return h("div", { class: "field" }, h("label", { for: id }, label), control, note, wrong);
}

export function input(name, attributes = {}) {
  return h("input", { name, autocomplete: "off", spellcheck: "false", ...attributes });
}

export function select(name, choices, attributes = {}) {
  const options = choices.map(([key, words]) => h("option", { value: key }, words));
  return h("select", { name, ...attributes }, options);
}

export function checkbox(name, label, { hint, checked = false } = {}) {
  const id = freshId("check");
  const box = h("input", { type: "checkbox", name, id, props: { checked }, "aria-describedby": hint ? `${id}-hint` : null });
  const words = h("div", {}, h("label", { for: id }, label), hint && h("span", { class: "hint", id: `${id}-hint` }, hint));
  return h("div", { class: "choice" }, box, words);
}

export function radios(name, legend, choices, chosen) {
  const options = choices.map(([key, words]) =>
    h("label", {}, h("input", { type: "radio", name, value: key, props: { checked: key === chosen } }), words),
  );
  return h("fieldset", { class: "field" }, h("legend", {}, legend), h("div", { class: "row" }, h("div", { class: "switch" }, options)));
}

export function notice(kind, ...children) {
  return h("div", { class: `notice ${kind}` }, children);
}

// A problem in one sentence, and what to do next.
export function explain(error, extra) {
  const next = error instanceof Problem ? nextStep(error) : "";
  return h("div", { class: "notice bad", role: "alert" }, h("p", {}, inWords(error)), next && h("p", { class: "next" }, next), extra);
}

export function markFields(form, problem) {
  for (const control of form.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
  for (const place of problem?.body?.errors ?? []) {
    const control = form.querySelector(`[name="${CSS.escape(String(place.where).split(".")[0])}"]`);
    control?.setAttribute("aria-invalid", "true");
  }
}

// A form that asks the service: shows what went wrong at its end, never sends twice at once.
export function form(attributes, children, act) {
  const place = h("div", {});
  const made = h("form", { class: "stack", novalidate: true, ...attributes }, children, place);
  made.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = made.querySelector("button[type=submit]");
    if (button.disabled) return;
    const missing = [...made.elements].find((control) => control.willValidate && !control.checkValidity());
    replace(place);
    if (missing) {
      const label = made.querySelector(`label[for="${missing.id}"]`)?.textContent ?? missing.getAttribute("aria-label") ?? missing.name;
      missing.setAttribute("aria-invalid", "true");
      replace(place, notice("bad", h("p", {}, `${label}: ${missing.validationMessage}`)));
      announce(`${label}: ${missing.validationMessage}`);
      missing.focus();
      return;
    }
    for (const control of made.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
    button.disabled = true;
    try {
      await act(new FormData(made), made);
    } catch (error) {
      if (error instanceof Problem) markFields(made, error);
      replace(place, explain(error));
    } finally {
      button.disabled = false;
    }
  });
  return made;
}

export function submit(words, kind = "primary") {
  return h("button", { type: "submit", class: kind }, words);
}

export function button(words, act, kind = "") {
  const made = h("button", { type: "button", class: kind }, words);
  made.addEventListener("click", async () => {
    if (made.disabled) return;
    made.disabled = true;
    try {
      await act(made);
    } catch (error) {
      if (error.name !== "AbortError") toast(`${inWords(error)} ${error instanceof Problem ? nextStep(error) : ""}`, "bad");
    } finally {
      made.disabled = false;
    }
  });
  return made;
}

export function copyButton(text, words = "Copy") {
  return button(words, async (made) => {
    const content = typeof text === "function" ? text() : text;
    await copy(content);
    made.textContent = "Copied";
    announce("Copied");
    setTimeout(() => (made.textContent = words), 2000);
  }, "small");
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

export function table(headings, rows, { empty = "Nothing here yet.", label, fold = true } = {}) {
  if (!rows.length) return h("p", { class: "muted" }, empty);
  const head = h("tr", {}, headings.map((each) => h("th", { scope: "col", class: each.right ? "right" : null }, each.name ? each.name : h("span", { class: "unseen" }, each.unseen ?? "Actions"))));
  const body = rows.map((cells) =>
    h("tr", {}, cells.map((cell, i) => h("td", { class: headings[i].right ? "right" : null, "data-label": headings[i].name ?? "" }, cell))),
  );
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label ?? "Table" }, h("table", { class: fold ? "fold" : null }, h("thead", {}, head), h("tbody", {}, body)));
}

// A table that grows page by page.
export function growing(list, draw) {
  const place = h("div", { class: "stack" });
  const items = [];
  const more = async () => {
    items.push(...(await list.next()));
    replace(place, draw(items), !list.done && h("div", {}, button("Show more", more)));
  };
  return { place, more };
}

export function gauge(budget, { label, asked = null } = {}) {
  const total = value(budget.total);
  const share = (x) => `${total > 0 ? Math.min(100, Math.max(0, (100 * x) / total)) : 0}%`;
  const spent = value(budget.spent);
  const reserved = value(budget.reserved);
  const left = value(budget.remaining);
  const wanted = asked === null ? 0 : Math.min(asked, left);
  const words = `${label}: ${amount(budget.remaining)} of ${amount(budget.total)} remaining, ${amount(budget.spent)} spent, ${amount(budget.reserved)} reserved`;
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
  return h("dl", { class: "facts" }, entries.filter(Boolean).map(([name, content]) => [h("dt", {}, name), h("dd", {}, content)]));
}

export function figures(entries) {
  return h("dl", { class: "figures" }, entries.map(([name, figure, small]) => h("div", {}, h("dt", {}, name), h("dd", {}, figure, small && h("small", {}, small)))));
}

export function tag(words, kind = "") {
  return h("span", { class: `tag ${kind}` }, words);
}

const STATES = {
  draft: ["waiting for data", "warn"],
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

// A modal window: keeps the focus inside, closes with Escape, gives the focus back.
export function dialog(title, build) {
  const id = freshId("dialog");
  const opener = document.activeElement;
  const box = h("dialog", { "aria-labelledby": id });
  const close = () => box.close();
  box.append(h("div", { class: "stack" }, h("h2", { id }, title), build(close)));
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Tab") return;
    const stops = [...box.querySelectorAll("a[href], button, input, select, textarea, [tabindex]")].filter((each) => !each.disabled && each.offsetParent !== null);
    const edge = event.shiftKey ? stops[0] : stops[stops.length - 1];
    if (document.activeElement === edge || !box.contains(document.activeElement)) {
      event.preventDefault();
      (event.shiftKey ? stops[stops.length - 1] : stops[0]).focus();
    }
  });
  box.addEventListener("close", () => {
    box.remove();
    if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
  });
  document.body.append(box);
  box.showModal();
  return box;
}

export function showKey(title, key, whose) {
  dialog(title, (close) => [
    h("p", {}, `This is ${whose}'s key. It is shown this once: copy it now and hand it over on a safe way.`),
    h("code", { class: "key" }, key),
    h("div", { class: "row end" }, copyButton(key, "Copy the key"), h("button", { type: "button", class: "primary", on: { click: close } }, "I have kept it")),
  ]);
}

export function confirm(title, words, action, act, kind = "danger") {
  dialog(title, (close) => [
    h("p", {}, words),
    h(
      "div",
      { class: "row end" },
      h("button", { type: "button", on: { click: close } }, "Not now"),
      button(action, async () => {
        await act();
        close();
      }, kind),
    ),
  ]);
}

export function budgetFields({ epsilon = "", delta: d = "", prefix = "", hintEpsilon, hintDelta } = {}) {
  const numeric = { inputmode: "decimal", required: true, pattern: "[0-9]*[.]?[0-9]*([eE]-?[0-9]+)?" };
  return h(
    "div",
    { class: "columns" },
    field("Epsilon (ε)", input(`${prefix}epsilon`, { ...numeric, value: epsilon }), { hint: hintEpsilon }),
    field("Delta (δ)", input(`${prefix}delta`, { ...numeric, value: d }), { hint: hintDelta }),
  );
}

// Exact decimals travel as strings; JavaScript's numbers never touch them, but 1e-6 is written out.
export function decimal(text) {
  const trimmed = String(text).trim();
  const match = /^([0-9]*)(?:[.]([0-9]*))?[eE](-?)([0-9]+)$/.exec(trimmed);
  if (!match) return trimmed;
  const [, whole, fraction = "", minus, exponent] = match;
  const digits = whole + fraction;
  const point = whole.length + (minus ? -1 : 1) * Number(exponent);
  if (point <= 0) return `0.${"0".repeat(-point)}${digits}`;
  return point >= digits.length ? digits + "0".repeat(point - digits.length) : `${digits.slice(0, point)}.${digits.slice(point)}`;
}

export { amount, delta, number, symbol };
