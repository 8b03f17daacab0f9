// The listing of a dataset in the catalogue: what people without a grant see, as its owner chooses it.

import { put, remove } from "../api.js";
import { h, replace, toast } from "../dom.js";
import { checkbox, field, form, input, submit } from "../forms.js";
import { moment } from "../format.js";
import { button, confirm, dialog, facts } from "../widgets.js";

const FEW_LINES = 12;
const path = (name) => `/v1/datasets/${name}/listing`;

// Groups of facts in words, as the catalogue shows them.
export function shownGroups(groups) {
  return groups.length > 0 && facts(groups.map(({ title, lines }) => [title, shown(lines)]));
}

function shown(lines) {
  if (lines.length === 1) return lines[0];
  const item = (line) => h("li", {}, line);
  const rest = lines.slice(FEW_LINES);
  return [
    h("ul", { class: "plain" }, lines.slice(0, FEW_LINES).map(item)),
    rest.length > 0 &&
      h("details", {}, h("summary", {}, `${rest.length} more`), h("ul", { class: "plain" }, rest.map(item))),
  ];
}

// The owner's card on the page of a sealed dataset.
export function listingCard(found, listing, reload) {
  const listed = listing.since !== null;
  const chosen = listing.groups.filter(({ group }) => listing.shows.includes(group));
  const names = ["the name", ...chosen.map(({ title }) => title.toLowerCase())].join(", ");
  return h(
    "section",
    { class: "card stack", id: "listing" },
    h("h2", {}, "Catalogue"),
    h(
      "p",
      { class: "muted" },
      listed
        ? `Listed since ${moment(listing.since)}. Everybody who is signed in sees: ${names}.`
        : "Not listed: nobody without a grant knows of it. Listed datasets can be found and asked for.",
    ),
    h(
      "div",
      { class: "row" },
      button(listed ? "Change what is shown" : "List in the catalogue", () => choose(found, listing, reload)),
      listed && button("Remove from the catalogue", () => unlist(found, reload)),
    ),
  );
}

function unlist(found, reload) {
  confirm(
    `Remove ${found.name} from the catalogue?`,
    "People without a grant no longer find it. Grants stay as they are.",
    "Remove it",
    async () => {
      await remove(path(found.name));
      toast("It is not in the catalogue any more.");
      await reload();
    },
  );
}

function choose(found, listing, reload) {
  const title = input("title", { maxlength: "200", value: listing.title, placeholder: found.name });
  const preview = h("div", { class: "card hollow stack" });
  const boxes = listing.groups.map(({ group, title: words }) =>
    checkbox(group, words, { checked: listing.shows.includes(group) }),
  );
  const draw = (made) => {
    const data = new FormData(made);
    const wanted = title.value.trim();
    replace(
      preview,
      h("h3", {}, wanted || found.name),
      wanted && h("p", { class: "small muted" }, h("code", {}, found.name)),
      shownGroups(listing.groups.filter(({ group }) => data.has(group))),
    );
  };
  dialog(`${found.name} in the catalogue`, (close) => {
    const made = form(
      {},
      [
        h(
          "p",
          {},
          "Everybody who is signed in can read what you choose here. Budgets, what is left of them, and the " +
            "number of rows are never shown.",
        ),
        field("Title", title, { hint: "Shown above the name." }),
        h("fieldset", { class: "field" }, h("legend", {}, "What is shown"), boxes),
        h("h3", {}, "What others will see"),
        preview,
        h(
          "div",
          { class: "row end" },
          h("button", { type: "button", on: { click: close } }, "Cancel"),
          submit(listing.since === null ? "List it" : "Save"),
        ),
      ],
      async (data) => {
        const shows = listing.groups.map(({ group }) => group).filter((group) => data.has(group));
        await put(path(found.name), { title: title.value.trim(), shows });
        close();
        toast("It is in the catalogue. This is recorded in the audit log.");
        await reload();
      },
    );
    made.addEventListener("input", () => draw(made));
    draw(made);
    return made;
  });
}
