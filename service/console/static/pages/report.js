// A page to print for a data protection officer: what a release promises, in questions and answers.

import { get } from "../api.js";
import { h } from "../dom.js";
import { withPowers } from "../format.js";
import { button, facts, notice } from "../widgets.js";
import { signed } from "./receipt.js";

// Commands stand between backticks.
const withCode = (text) => text.split("`").map((part, i) => (i % 2 ? h("code", {}, part) : part));

export async function report(_context, id) {
  const receipt = await get(`/v1/jobs/${id}/receipt`);
  const asked = receipt.explanation ?? [];
  const content = h(
    "div",
    { class: "stack loose" },
    h(
      "div",
      { class: "head" },
      h(
        "div",
        { class: "stack tight" },
        h("p", { class: "crumb" }, h("a", { href: `#/jobs/${id}` }, "Back to the job")),
        h("h1", {}, `Report on a release from ${receipt.dataset}`),
      ),
      asked.length > 0 && button("Print", () => window.print()),
    ),
    asked.length
      ? h(
          "section",
          { class: "card stack", id: "report" },
          facts([
            ...asked.map(({ question, answer }) => [question, withCode(withPowers(answer))]),
            ["How should the release be cited?", withPowers(receipt.citation)],
            ["Job", h("code", {}, receipt.job)],
            ["Digest of the receipt", h("code", {}, receipt.digest)],
            ["Signed", signed(receipt)],
          ]),
        )
      : notice(
          "warn",
          h(
            "p",
            {},
            "There is no report: this is a rehearsal, or its receipt comes from an earlier version.",
          ),
        ),
  );
  return { title: `Report on ${receipt.dataset}`, content };
}
