// People and their keys, for curators and operators.

import { all, get, post, remove } from "../api.js";
import { h, toast } from "../dom.js";
import { checkbox, field, filled, form, input, isName, isWhole, optional, select, submit } from "../forms.js";
import { moment } from "../format.js";
import { sessionLines } from "./sessions.js";
import { button, confirm, dialog, showKey, tag } from "../widgets.js";

export async function people({ me, reload }) {
  const [found, providers] = await Promise.all([
    all("/v1/principals"),
    get("/.well-known/cairn-providers.json").then(({ items }) => items),
  ]);
  const content = h(
    "div",
    { class: "stack loose" },
    h(
      "div",
      { class: "head" },
      h(
        "div",
        { class: "stack tight" },
        h("h1", {}, "People"),
        h(
          "p",
          { class: "muted" },
          "Who may sign in, and with which keys. A key is shown once, when it is issued.",
        ),
      ),
      button("New person", () => create(reload), "primary"),
    ),
    h(
      "ul",
      { class: "cards plain" },
      found.map((each) => h("li", {}, card(each, providers, me, reload))),
    ),
  );
  return { title: "People", content };
}

function card(person, providers, me, reload) {
  const ended = Boolean(person.disabled_at);
  const keys = person.keys.filter((key) => !key.revoked_at);
  return h(
    "article",
    { class: "card stack" },
    h(
      "div",
      { class: "row apart" },
      h("h2", {}, person.name),
      ended
        ? tag(person.waits ? "waits" : "disabled", person.waits ? "warn" : "bad")
        : tag(person.role, person.role === "curator" ? "good" : ""),
    ),
    h(
      "p",
      { class: "small muted" },
      `Created ${moment(person.created_at)}${person.created_by ? ` by ${person.created_by}` : ""}`,
    ),
    keys.length > 0 &&
      h(
        "ul",
        { class: "plain stack tight" },
        keys.map((key) =>
          h(
            "li",
            { class: "row apart" },
            h(
              "span",
              {},
              h("code", {}, key.id),
              ` ${key.label || "without a label"}`,
              h("span", { class: "small muted" }, limitsInWords(key)),
              h("span", { class: "small muted" }, key.expires_at && ` · until ${moment(key.expires_at)}`),
            ),
            !ended &&
              h(
                "span",
                {},
                button("Revoke", () => revoke(person, key, reload), "small quiet"),
              ),
          ),
        ),
      ),
    person.sessions.length > 0 && [
      h("h3", {}, "Sessions"),
      h("ul", { class: "plain stack tight" }, sessionLines(person.sessions, reload)),
    ],
    person.identities.length > 0 && [
      h("h3", {}, "Signs in by"),
      h(
        "ul",
        { class: "plain" },
        person.identities.map(({ issuer, subject }) =>
          h("li", {}, titleOf(providers, issuer), " as ", h("code", {}, subject)),
        ),
      ),
    ],
    person.waits &&
      h("p", { class: "muted" }, "Signed in by a provider for the first time, and waits to be let in."),
    ended &&
      h(
        "div",
        { class: "row" },
        button("Enable account", () => enable(person, reload), "small"),
      ),
    !ended &&
      h(
        "div",
        { class: "row" },
        button("Another key", () => another(person, reload), "small"),
        providers.length > 0 && button("Link an identity", () => link(person, providers, reload), "small"),
        person.name !== me.name && button("Disable account", () => end(person, reload), "small danger"),
      ),
  );
}

function limitsInWords(key) {
  const only = [...(key.datasets ?? []), ...(key.read_only ? ["reading"] : [])];
  return only.length > 0 && ` · only for ${only.join(", ")}`;
}

function create(reload) {
  dialog("New person", (close) => [
    form(
      {},
      [
        field("Name", input("name"), {
          hint: "Lower-case letters, digits, dots, dashes and underscores.",
          check: isName("Enter a name for the person."),
        }),
        field(
          "Role",
          select("role", [
            ["analyst", "Analyst: plans and submits jobs"],
            ["curator", "Curator: owns datasets and budgets"],
            ["auditor", "Auditor: reads ledgers, receipts and the audit log; no results"],
            ["operator", "Operator: manages people and watches the service; no data"],
          ]),
        ),
        h(
          "div",
          { class: "row end" },
          h("button", { type: "button", on: { click: close } }, "Cancel"),
          submit("Create"),
        ),
      ],
      async (data) => {
        const made = await post("/v1/principals", { name: data.get("name").trim(), role: data.get("role") });
        close();
        await reload();
        showKey(`${made.name} can sign in`, made.first_key.key, made.name);
      },
    ),
  ]);
}

function another(person, reload) {
  dialog(`Another key for ${person.name}`, (close) => [
    form(
      {},
      [
        field("Label", input("label", { maxlength: "64", placeholder: "laptop" }), {
          hint: "Helps you tell keys apart.",
        }),
        field("Days until it expires", input("days", { inputmode: "numeric", placeholder: "never" }), {
          hint: "Leave it empty for a key that is valid until it is revoked.",
          check: optional(
            isWhole("Enter the number of days (1 or more), or leave it empty.", { most: 3650 }),
          ),
        }),
        field("Only for these datasets", input("datasets", { placeholder: "all" }), {
          hint: "Names, with commas between them. Leave it empty for all that the person may use.",
        }),
        checkbox("read_only", "Only for reading", { hint: "The key can submit and change nothing." }),
        h(
          "div",
          { class: "row end" },
          h("button", { type: "button", on: { click: close } }, "Cancel"),
          submit("Issue key"),
        ),
      ],
      async (data) => {
        const days = data.get("days").trim();
        const names = data
          .get("datasets")
          .split(/[\s,]+/)
          .filter(Boolean);
        const made = await post(`/v1/principals/${person.name}/keys`, {
          label: data.get("label"),
          expires_in_days: days ? Number(days) : null,
          datasets: names.length ? names : null,
          read_only: data.has("read_only"),
        });
        close();
        await reload();
        showKey("A new key", made.key, person.name);
      },
    ),
  ]);
}

const titleOf = (providers, issuer) => providers.find((each) => each.issuer === issuer)?.title ?? issuer;

function link(person, providers, reload) {
  dialog(`Link an identity to ${person.name}`, (close) => [
    form(
      {},
      [
        h("p", {}, "Whoever has this identity can then sign in to the account."),
        field(
          "Provider",
          select(
            "provider",
            providers.map(({ name, title }) => [name, title]),
          ),
        ),
        field("Subject", input("subject", { maxlength: "255" }), {
          hint: "The person's “sub” at the provider: an id that never changes, not a name.",
          check: filled("Enter the subject."),
        }),
        h(
          "div",
          { class: "row end" },
          h("button", { type: "button", on: { click: close } }, "Cancel"),
          submit("Link it"),
        ),
      ],
      async (data) => {
        await post(`/v1/principals/${person.name}/identities`, {
          provider: data.get("provider"),
          subject: data.get("subject").trim(),
        });
        close();
        toast(`${person.name} can sign in by it.`);
        await reload();
      },
    ),
  ]);
}

async function enable(person, reload) {
  await post(`/v1/principals/${person.name}/enable`);
  toast(`${person.name} can sign in.`);
  await reload();
}

function revoke(person, key, reload) {
  confirm(
    "Revoke this key?",
    `Programs and people that use the key ${key.id} of ${person.name} lose access ` +
      "immediately, and browsers that signed in with it are signed out.",
    "Revoke it",
    async () => {
      await remove(`/v1/principals/${person.name}/keys/${key.id}`);
      toast("The key is revoked.");
      await reload();
    },
  );
}

function end(person, reload) {
  confirm(
    `Disable the account of ${person.name}?`,
    "All their keys stop working and they are signed out everywhere. Their history is kept.",
    "Disable account",
    async () => {
      await remove(`/v1/principals/${person.name}`);
      toast(`${person.name} is disabled.`);
      await reload();
    },
  );
}
