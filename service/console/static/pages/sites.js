// Sets of public sites that jobs may choose centres among: listed for everybody, stored by the curator.

import { get, upload } from "../api.js";
import { h, toast } from "../dom.js";
import { field, filled, form, input, isName, select, submit } from "../forms.js";
import { COUNT, moment, plural } from "../format.js";
import { table } from "../widgets.js";

export const KINDS = {
  coordinates: "values of the columns",
  "great-circle": "latitude and longitude",
  distances: "distances between sites",
};

const HINTS = {
  coordinates: (found) =>
    `One line per site with ${plural(found.dimension, "value")}, separated by commas, inside ` +
    "the bounds. No header.",
  "great-circle": () =>
    "One line per site: latitude, then longitude, in degrees. No header. Distances follow " +
    "the earth's surface.",
  distances: (found) =>
    `${COUNT.format(found.dimension)} lines of ${COUNT.format(found.dimension)} distances: ` +
    "from each site to every site. No header.",
};

export async function sites({ me, reload }, found) {
  const { items } = await get(`/v1/datasets/${found.name}/sites`);
  const owns = me.role === "curator" && found.state !== "retired";
  const headings = [
    { name: "Name" },
    { name: "Sites", right: true },
    { name: "Given as" },
    { name: "Stored" },
  ];
  const rows = items.map((each) => [
    h("strong", {}, each.name),
    COUNT.format(each.count),
    KINDS[each.kind] ?? each.kind,
    h("span", { class: "nowrap" }, moment(each.created_at)),
  ]);
  const empty = owns
    ? "None yet. With public sites, analysts can ask which few of them are closest to the records."
    : "None yet. Algorithms that choose among public sites need some: ask the curator.";
  const list = h(
    "section",
    { class: "card stack" },
    h("h2", {}, "Public sites"),
    h(
      "p",
      { class: "muted" },
      "Public places such as stations, depots or shops. Some algorithms choose their centres among them.",
    ),
    table(headings, rows, { empty, label: "Public sites" }),
  );
  return owns ? h("div", { class: "halves" }, list, storeCard(found, reload)) : list;
}

// Which kinds of numbers make sense for the dataset's rows.
function kindsFor(found) {
  if (found.kind === "ids") return ["distances"];
  if (found.kind !== "dense") return [];
  return found.dimension === 2 && found.bounds.box ? ["coordinates", "great-circle"] : ["coordinates"];
}

function storeCard(found, reload) {
  const kinds = kindsFor(found);
  if (!kinds.length)
    return h(
      "section",
      { class: "card stack" },
      h("h2", {}, "Store sites"),
      h("p", { class: "muted" }, "Sparse rows have no sites to choose among."),
    );
  const kind = select(
    "kind",
    kinds.map((each) => [each, KINDS[each]]),
  );
  const file = h("input", { type: "file", name: "file", accept: ".csv,.txt,.npy" });
  const chosen = field("File", file, { hint: HINTS[kinds[0]](found), check: filled("Choose a file.") });
  kind.addEventListener("change", () =>
    chosen.querySelector(".hint").replaceChildren(HINTS[kind.value](found)),
  );
  const made = form(
    {},
    [
      field("Name", input("name", { placeholder: "stations" }), {
        hint: "Lower-case letters, digits, dots, dashes and underscores. Analysts see it.",
        check: isName("Enter a name for the set of sites."),
      }),
      field("The file holds", kind),
      chosen,
      h("div", { class: "row" }, submit("Store the sites")),
    ],
    async (data) => {
      const name = encodeURIComponent(String(data.get("name")).trim());
      const path = `/v1/datasets/${found.name}/sites/${name}?kind=${data.get("kind")}`;
      const stored = await upload(path, data.get("file"), () => {}).done;
      toast(`${stored.name} is stored with ${plural(stored.count, "site")}.`);
      await reload();
    },
  );
  return h(
    "section",
    { class: "card stack" },
    h("h2", {}, "Store sites"),
    h(
      "p",
      { class: "muted" },
      "A set never changes; store another list under another name. Sites must be public, " +
        "never taken from the rows.",
    ),
    made,
  );
}
