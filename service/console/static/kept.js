// What was typed into forms, kept in this tab until it is sent: it survives going back, a reload and the end of
// a session. Keys, files and confirmations are never kept, and nothing outlasts signing out.

import { place } from "./address.js";
import { freshId, h } from "./dom.js";

const PREFIX = "cairn.form";
const NEVER = ["password", "file", "submit", "button"];
const MOST_PASSES = 5; // a control that is set may draw others, which are set in the next pass

/**
 * A form that is shown: where its entry is kept, and what it said before anybody typed.
 * @typedef {{key: string, before: string}} Watched
 * @typedef {HTMLFormElement & {shape?: {read: () => any, restore: (shape: any) => void}}} Form a form whose
 *   number of fields can change says how: `read` describes the fields, `restore` makes the same ones again
 */

/** @type {Map<Form, Watched>} */
const watched = new Map();
let owner = "";

/** @param {string} name who is signed in; what anybody else typed is deleted */
export function keepFor(name) {
  owner = name;
  clear((key) => !key.startsWith(`${PREFIX}:${owner}:`));
}

/** Deletes what is kept. @param {(key: string) => boolean} [which] */
export function clear(which = () => true) {
  inStorage((storage) => {
    for (const key of Object.keys(storage))
      if (key.startsWith(`${PREFIX}:`) && which(key)) storage.removeItem(key);
  });
}

/**
 * Keeps the forms of an element from now on, and puts back what was typed into them before.
 * @param {HTMLElement} element
 * @param {() => void} [afresh] shows the forms again, without what was typed
 */
export function keepForms(element, afresh = showPageAgain) {
  for (const form of /** @type {NodeListOf<Form>} */ (element.querySelectorAll("form:not([data-kept=no])"))) {
    if (watched.has(form)) continue;
    const key = keyOf(form);
    watched.set(form, { key, before: JSON.stringify(typedInto(form)) });
    const entry = inStorage((storage) => storage.getItem(key));
    if (!entry) continue;
    restore(form, JSON.parse(entry));
    form.prepend(isBack(() => discard(form, afresh)));
  }
}

/** Stores what is typed into the forms that are shown. */
export function remember() {
  for (const [form, { key, before }] of watched) {
    if (!form.isConnected) {
      watched.delete(form);
      continue;
    }
    const now = JSON.stringify(typedInto(form));
    inStorage((storage) => (now === before ? storage.removeItem(key) : storage.setItem(key, now)));
  }
}

/** What a form says is sent, or no longer wanted. @param {Form} form */
export function forget(form) {
  const kept = watched.get(form);
  if (!kept) return;
  kept.before = JSON.stringify(typedInto(form));
  inStorage((storage) => storage.removeItem(kept.key));
}

/** True if a form that is shown says something that was not sent. A form that only asks for a price is free to leave. */
export function hasChanges() {
  return [...watched].some(
    ([form, { before }]) =>
      form.isConnected && form.dataset.asks !== "no" && JSON.stringify(typedInto(form)) !== before,
  );
}

const showPageAgain = () => dispatchEvent(new Event("hashchange"));

// A form is recognised by its page, the title of its dialog and the names of its fields.
function keyOf(form) {
  const title = form.closest("dialog")?.querySelector("h2")?.textContent ?? "";
  const names = [...new Set(controlsOf(form).map((each) => each.name))];
  return [PREFIX, owner, place(), title, names.join()].join(":");
}

function controlsOf(form) {
  return [...form.elements].filter(
    (each) => each.name && !NEVER.includes(each.type) && !each.closest("[data-kept=no]"),
  );
}

const isBox = (control) => control.type === "checkbox" || control.type === "radio";

// Controls by their name and their number among those of that name.
function numbered(form) {
  const counts = new Map();
  const found = new Map();
  for (const control of controlsOf(form)) {
    const count = counts.get(control.name) ?? 0;
    counts.set(control.name, count + 1);
    found.set(`${control.name}:${count}`, control);
  }
  return found;
}

function typedInto(form) {
  const values = [...numbered(form)].map(([key, control]) => [
    key,
    isBox(control) ? control.checked : control.value,
  ]);
  return { shape: form.shape?.read(), values };
}

function restore(form, { shape, values }) {
  if (shape !== undefined) form.shape?.restore(shape);
  for (let pass = 0; pass < MOST_PASSES; pass += 1) {
    const differing = values.filter(([key, value]) => put(numbered(form).get(key), value));
    if (!differing.length) return;
  }
}

// Sets a control as a person would; true if it said something else before.
function put(control, value) {
  if (!control) return false;
  const property = isBox(control) ? "checked" : "value";
  if (control[property] === value || (control.type === "radio" && !value)) return false;
  control[property] = value;
  for (const event of ["input", "change"]) control.dispatchEvent(new Event(event, { bubbles: true }));
  return true;
}

function discard(form, afresh) {
  const { key } = watched.get(form);
  watched.delete(form);
  inStorage((storage) => storage.removeItem(key));
  afresh();
}

function isBack(act) {
  return h(
    "div",
    { class: "notice row apart", id: freshId("kept") },
    h("p", {}, "What you typed here before is back."),
    h("button", { type: "button", class: "small", on: { click: act } }, "Start afresh"),
  );
}

// A tab without storage, or with a full one, keeps nothing.
function inStorage(act) {
  try {
    return act(sessionStorage);
  } catch {
    return null;
  }
}
