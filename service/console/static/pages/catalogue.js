// The catalogue: datasets that their owners list for people without a grant.

import { pages } from "../api.js";
import { shownGroups } from "../datasets/listing.js";
import { h } from "../dom.js";
import { growing, tag } from "../widgets.js";

export async function catalogue({ me }) {
  const list = growing(
    pages("/v1/catalogue", 24),
    (items) =>
      items.length
        ? h(
            "ul",
            { class: "cards plain" },
            items.map((each) => h("li", {}, card(each, me))),
          )
        : h(
            "div",
            { class: "card hollow stack" },
            h("h2", {}, "Nothing is listed"),
            h("p", { class: "muted" }, "A dataset appears here when its curator lists it."),
          ),
    { words, find: "Find a dataset" },
  );
  await list.more();
  const content = h(
    "div",
    { class: "stack loose" },
    h(
      "div",
      { class: "stack tight" },
      h("h1", {}, "Catalogue"),
      h("p", { class: "muted" }, "Datasets whose curators let everybody here know about them."),
    ),
    list.place,
  );
  return { title: "Catalogue", content };
}

const words = (each) => [each.name, each.title, ...each.groups.flatMap(({ lines }) => lines)].join(" ");

function card(each, me) {
  return h(
    "article",
    { class: "card stack" },
    h(
      "div",
      { class: "row apart" },
      h("h2", {}, each.title),
      each.accessible && me.role !== "auditor" && tag(me.role === "curator" ? "yours" : "granted", "good"),
    ),
    each.title !== each.name && h("p", { class: "small muted" }, h("code", {}, each.name)),
    shownGroups(each.groups),
    each.accessible && h("div", {}, h("a", { class: "button", href: `#/datasets/${each.name}` }, "Open")),
    !each.accessible &&
      me.role === "analyst" &&
      h("div", {}, h("a", { class: "button", href: `#/datasets/${each.name}/request` }, "Request access")),
  );
}
