// Sign in with a key, or by an institution's provider.

import { h, s } from "../dom.js";
import { get, Problem, session } from "../api.js";
import { checkbox, field, filled, form, input, submit } from "../forms.js";
import { button, notice } from "../widgets.js";

function wrongKey() {
  return new Problem(
    {
      type: "/problems/sign-in",
      detail:
        "This key is unknown, expired or revoked. Check that you copied all of it, or ask a " +
        "curator for a new one",
    },
    401,
  );
}

export function signIn(signedIn, reason) {
  const key = input("key", { type: "password", placeholder: "cairn_…", autocomplete: "current-password" });
  const card = form(
    { class: "stack", "data-kept": "no" },
    [
      h("h2", {}, "Sign in"),
      reason && notice("warn", h("p", {}, `You were signed out: ${reason}.`)),
      field("Your key", key, {
        hint: "Used once to sign in. The page does not keep it.",
        check: filled("Enter your key."),
      }),
      checkbox("remember", "Keep me signed in", {
        hint: "Even after the browser is closed. Not for shared computers.",
      }),
      h("div", {}, submit("Sign in")),
    ],
    async (data) => {
      const given = data.get("key").trim();
      try {
        // A key is made of letters, digits, dashes and underscores; a browser could not even send anything
        // else.
        if (!/^[\w-]+$/.test(given)) throw wrongKey();
        await signedIn(given, data.has("remember"));
      } catch (error) {
        key.focus();
        throw error.status === 401 ? wrongKey() : error;
      }
    },
  );
  return h(
    "div",
    { class: "welcome" },
    h(
      "div",
      { class: "stack" },
      h("h1", {}, "Find the groups. Protect everyone in them."),
      h(
        "p",
        { class: "muted" },
        "Cairn clusters sensitive data under differential privacy. Every job has a price " +
          "that is known in advance, every result has a receipt, and a ledger refuses jobs " +
          "that exceed the budget.",
      ),
      h(
        "p",
        { class: "muted" },
        "Curators upload data and set budgets. Analysts plan, rehearse for free, and submit.",
      ),
      hero(),
    ),
    h("div", { class: "card stack" }, providers(card), card),
  );
}

// A button for each provider, above the form; an installation without one shows the form alone.
function providers(card) {
  const place = h("div", { class: "stack" });
  get("/.well-known/cairn-providers.json")
    .then(({ items }) => {
      if (!items.length) return;
      card.querySelector("h2").textContent = "Or with a key";
      place.append(
        h("h2", {}, "Sign in"),
        ...items.map((each) =>
          button(`Sign in with ${each.title}`, () => session.depart(each.name), "primary"),
        ),
      );
    })
    .catch(() => {}); // a key still works
  return place;
}

// Grains that gather into stones inside a ring of doubt: drawn by formula, from no data.
function hero() {
  const groups = [
    [70, 95, 34, 0],
    [190, 60, 26, 1],
    [300, 110, 40, 2],
    [410, 55, 22, 3],
  ];
  const grains = groups.flatMap(([x, y, r, hue]) =>
    Array.from({ length: 26 }, (_, i) => {
      const turn = i * 2.39996;
      const out = r * 1.35 * Math.sqrt((i + 0.5) / 26);
      return s("circle", {
        class: `grain hue-${hue}`,
        cx: x + out * Math.cos(turn),
        cy: y + out * 0.8 * Math.sin(turn),
        r: 2.4,
      });
    }),
  );
  const stones = groups.map(([x, y, r, hue]) => [
    s("ellipse", { class: "ring", cx: x, cy: y, rx: r * 1.6, ry: r * 1.3 }),
    s("ellipse", { class: `stone hue-${hue}`, cx: x, cy: y, rx: r * 0.36, ry: r * 0.3 }),
  ]);
  return s("svg", { class: "hero", viewBox: "0 0 470 180", "aria-hidden": "true" }, grains, stones);
}
