// Builds elements. Text is always text: nothing here parses markup, so nothing that is shown can run.

/**
 * What `guard` adds to a control: `check` returns what is wrong with it, `tell` shows that.
 * @typedef {{check?: () => string, tell?: (words: string) => void}} Guarded
 * @typedef {(HTMLInputElement & HTMLSelectElement & HTMLTextAreaElement) & Guarded} Control
 */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Attributes of an element; `on` has listeners, `props` properties, `vars` variables of CSS.
 * @typedef {Record<string, any>} Attributes
 */

/**
 * @template {Element & ElementCSSInlineStyle} E
 * @param {E} element
 * @param {Attributes} attributes
 * @param {any[]} children
 * @returns {E}
 */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (name === "props") Object.assign(element, value);
    else if (name === "vars")
      for (const [key, v] of Object.entries(value)) element.style.setProperty(`--${key}`, v);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

/**
 * @template {Element} E
 * @param {E} element
 * @param {any} children nodes and texts, in lists of any depth; nothing is made of `false` and `null`
 * @returns {E}
 */
export function append(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} attributes
 * @param {...any} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/**
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} attributes
 * @param {...any} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * @template {Element} E
 * @param {E} element
 * @param {...any} children
 * @returns {E}
 */
export function replace(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

let serial = 0;
export function freshId(stem = "id") {
  serial += 1;
  return `${stem}-${serial}`;
}

export function announce(words) {
  const place = document.getElementById("announcer");
  // A changed node is read out even when the words are the same as before.
  place.replaceChildren(document.createTextNode(words));
}

export function toast(words, kind = "good") {
  const place = document.getElementById("toasts");
  const note = h("div", { class: `toast ${kind}` }, h("span", {}, words));
  const close = h(
    "button",
    { class: "icon", type: "button", "aria-label": "Dismiss", on: { click: () => note.remove() } },
    "×",
  );
  note.append(close);
  place.append(note);
  if (kind === "good") setTimeout(() => note.remove(), 6000);
}
