// A chart as a file: SVG or PNG, as it is seen, with its label as title and nothing from the style sheet missing.

import { save as saveAs } from "../api.js";
import { h, s } from "../dom.js";
import { button } from "../widgets.js";

const DOTS = 2; // of a PNG for each unit of the drawing
// What the style sheet decides about shapes and texts, kept as attributes: a file has no style sheet.
const KEPT = [
  "display",
  "dominant-baseline",
  "fill",
  "fill-opacity",
  "font-family",
  "font-size",
  "font-weight",
  "opacity",
  "paint-order",
  "stroke",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "stroke-opacity",
  "stroke-width",
  "text-anchor",
  "visibility",
];

/**
 * Buttons that save the chart of a place.
 * @param {HTMLElement} place holds the chart, and its label
 */
export function pictureButtons(place) {
  const drawing = () => standalone(place.querySelector("svg"), place.getAttribute("aria-label"));
  const save = (ending, made) => saveAs(made, `${stem(place.getAttribute("aria-label"))}.${ending}`);
  const toSvg = () => save("svg", new Blob([drawing().text], { type: "image/svg+xml" }));
  const toPng = async () => save("png", await rasterised(drawing()));
  const named = (words, act) => {
    const made = button(words, act, "small quiet");
    made.setAttribute("aria-label", `Save this chart as ${words}`);
    return made;
  };
  return h("div", { class: "row end pictures" }, named("SVG", toSvg), named("PNG", toPng));
}

const stem = (label) =>
  label
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter(Boolean)
    .slice(0, 5)
    .join("-") || "chart";

function standalone(drawn, label) {
  const copy = /** @type {SVGSVGElement} */ (drawn.cloneNode(true));
  const copies = [copy, ...copy.querySelectorAll("*")];
  [drawn, ...drawn.querySelectorAll("*")].forEach((each, i) => {
    const style = getComputedStyle(each);
    for (const name of KEPT) copies[i].setAttribute(name, style.getPropertyValue(name));
    copies[i].removeAttribute("class");
  });
  const { width, height } = drawn.viewBox.baseVal;
  const behind = getComputedStyle(drawn.closest(".card") ?? document.body).backgroundColor;
  copy.prepend(s("title", {}, label), s("rect", { width, height, fill: behind }));
  copy.removeAttribute("aria-hidden");
  for (const [name, value] of Object.entries({ width, height })) copy.setAttribute(name, String(value));
  return { width, height, text: new XMLSerializer().serializeToString(copy) };
}

async function rasterised({ width, height, text }) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = h("canvas", { width: String(DOTS * width), height: String(DOTS * height) });
  canvas.getContext("2d").drawImage(image, 0, 0, DOTS * width, DOTS * height);
  return /** @type {Promise<Blob>} */ (new Promise((done) => canvas.toBlob(done, "image/png")));
}
