// The number of clusters of a job: left open, so that one job answers for every k in a range, or exactly one.

import { h } from "../dom.js";
import { field, input, isWhole, numberOf, radios } from "../forms.js";

const MOST_OPEN = 64;
const USUAL = { from: 1, to: 32 };

// `offer` says whether k can be left open now; a choice that cannot be made comes back when it can.
export function clusterFields() {
  const number = (name, value) => input(name, { inputmode: "numeric", value: String(value) });
  const [from, to, k] = [number("from", USUAL.from), number("to", USUAL.to), number("k", 4)];
  const whole = isWhole(`Enter a number from 1 to ${MOST_OPEN}.`, { most: MOST_OPEN });
  const last = (text) =>
    whole(text) || (Number(text) < Number(from.value) ? `Enter ${from.value} or more.` : "");
  const choice = radios(
    "open",
    "Number of clusters (k)",
    [
      ["yes", "leave open"],
      ["no", "exactly"],
    ],
    "yes",
  );
  const hint = h("span", { class: "hint" });
  const range = h(
    "div",
    { class: "columns" },
    field("From", from, { check: whole }),
    field("To", to, { check: last }),
  );
  const exact = field("Clusters (k)", k, {
    check: isWhole("Enter the number of clusters (1 or more).", { most: 10_000 }),
  });
  const [open, single] = choice.querySelectorAll("input");
  let preferred = true;
  let possible = true;
  const draw = () => {
    open.disabled = !possible;
    (possible && preferred ? open : single).checked = true;
    for (const each of [from, to]) each.disabled = !open.checked;
    k.disabled = open.checked;
    range.hidden = !open.checked;
    exact.hidden = open.checked;
    hint.textContent = open.checked
      ? "One job, one price: it answers for every k in this range, and suggests one."
      : possible
        ? ""
        : "k can be left open for means of dense rows and tables, with the algorithm auto or summit.";
  };
  choice.addEventListener("input", () => {
    preferred = open.checked;
    draw();
  });
  choice.append(hint);
  draw();
  return {
    element: h("div", { class: "stack" }, choice, range, exact),
    offer(able) {
      possible = able;
      draw();
    },
    read: () => (open.checked ? { from: numberOf(from.value), to: numberOf(to.value) } : numberOf(k.value)),
  };
}
