// The browsers that somebody is signed in with.

import { get, remove } from "../api.js";
import { h, toast } from "../dom.js";
import { moment } from "../format.js";
import { button, tag } from "../widgets.js";

// Sessions as lines of a list. The others get a button that ends them; this one has its button in the bar.
export function sessionLines(sessions, reload) {
  return sessions.map((each) =>
    h(
      "li",
      { class: "row apart" },
      h(
        "span",
        {},
        `Signed in ${moment(each.created_at)} `,
        each.current && tag("this browser", "good"),
        h(
          "span",
          { class: "small muted" },
          ` · ${each.key ? `with key ${each.key}` : `by ${each.issuer}`} · until ` +
            `${moment(each.expires_at)}${each.remembered ? "" : " or until the browser is closed"}`,
        ),
      ),
      !each.current &&
        button(
          "End session",
          async () => {
            await remove(`/v1/sessions/${each.id}`);
            toast("The session has ended.");
            await reload();
          },
          "small quiet",
        ),
    ),
  );
}

export async function sessions({ me, reload }) {
  const found = (await get("/v1/sessions")).items;
  const content = h(
    "div",
    { class: "stack loose" },
    h(
      "div",
      { class: "stack tight" },
      h("h1", {}, "Sessions"),
      h(
        "p",
        { class: "muted" },
        `Browsers that are signed in as ${me.name}. End the sessions that you do not ` +
          "recognise, and have the key they used revoked.",
      ),
    ),
    h("div", { class: "card" }, h("ul", { class: "plain stack tight" }, sessionLines(found, reload))),
  );
  return { title: "Sessions", content };
}
