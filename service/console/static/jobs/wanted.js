// What a request for access is begun with: what did not fit, or was not granted, on the page before.

import { h } from "../dom.js";

/** @type {Map<string, any>} */
const wanted = new Map();

/**
 * A link to the form of a request that begins with these values.
 * @param {string} dataset
 * @param {{amount?: any, kinds?: string[], plan?: any}} values
 */
export function requestMore(dataset, values) {
  return h(
    "a",
    {
      class: "button small",
      href: `#/datasets/${dataset}/request`,
      on: { click: () => wanted.set(dataset, values) },
    },
    "Request more",
  );
}

/** @param {string} dataset */
export const wantedOf = (dataset) => wanted.get(dataset) ?? {};

/** @param {string} dataset */
export const forgetWanted = (dataset) => wanted.delete(dataset);
