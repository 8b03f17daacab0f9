// What became of requests for access, and which ones wait: for the pages that tell of them.

import { get } from "../api.js";
import { h } from "../dom.js";
import { plural, withPowers } from "../format.js";
import { notice } from "../widgets.js";

export const STATES = {
  open: ["waits for the owner", "warn"],
  proposed: ["waits for a second curator", "warn"],
  granted: ["granted", "good"],
  declined: ["declined", "bad"],
  withdrawn: ["withdrawn", ""],
};

// The requests that wait for a curator, for the first page.
export async function waiting({ me, signal }) {
  if (me.role !== "curator") return null;
  const { items, next } = await get("/v1/requests?waiting=true&limit=100", { signal });
  if (!items.length) return null;
  const words = `${plural(items.length, "request")}${next ? " or more" : ""} for access ${items.length === 1 ? "waits" : "wait"} for you.`;
  return notice(
    "warn row apart",
    h("p", {}, words),
    h("a", { class: "button small", href: "#/requests" }, "Requests"),
  );
}

// What became of an analyst's newest request on a dataset, for the page where the job is planned.
export async function lastRequest({ me, signal }, dataset) {
  if (me.role !== "analyst") return null;
  const { items } = await get(`/v1/requests?dataset=${dataset}&limit=1`, { signal });
  const [last] = items;
  if (!last || last.state === "withdrawn") return null;
  const [, kind] = STATES[last.state];
  return notice(
    kind,
    h("p", {}, withPowers(`You asked for ${last.asked.words}. ${outcome(last)}`)),
    h("p", {}, h("a", { href: "#/requests" }, "All requests")),
  );
}

// What became of a request, in sentences.
export function outcome(request) {
  const { state, decided, decided_by: by, seconded_by: second, reason } = request;
  const why = reason ? ` “${reason}”` : "";
  if (state === "open") return `${request.owner} has not decided yet.`;
  if (state === "withdrawn") return "It was withdrawn.";
  if (state === "declined") return `${by} declined.${why}`;
  const granted = request.about === "total" ? "set" : "granted";
  if (state === "proposed")
    return `${by} agrees to ${decided.words}; a second curator must agree, too.${why}`;
  return `${by} ${granted} ${decided.words}${second ? `, and ${second} agreed` : ""}.${why}`;
}
