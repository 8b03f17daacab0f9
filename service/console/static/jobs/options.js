// Fields for the options of an algorithm or a question, from the JSON Schema that the service publishes.

import { field, input, isNumber, isWhole, numberOf, optional, select } from "../forms.js";
import { number } from "../format.js";

const AUTOMATIC = ["", "automatic"];
const shown = (schema) =>
  Object.entries(schema?.properties ?? {}).filter(([, each]) => each.type !== "object");
const named = (key) => key.replaceAll("_", " ");

// The fields of the options, by type: those of lists, which are the point of a question, and all others.
export function optionFields(schema) {
  const made = shown(schema).map(([key, each]) => ({
    list: each.type === "array",
    element: optionField(key, each),
  }));
  const of = (list) => made.filter((each) => each.list === list).map(({ element }) => element);
  return { lists: of(true), others: of(false) };
}

function optionField(key, each) {
  const attributes = { "data-option": key, "data-type": each.type };
  const name = `option-${key}`;
  const hint = each.description;
  if (each.enum) {
    return field(
      named(key),
      select(name, [AUTOMATIC, ...each.enum.map((word) => [word, word])], attributes),
      { hint },
    );
  }
  if (each.type === "boolean") {
    return field(named(key), select(name, [AUTOMATIC, ["true", "yes"], ["false", "no"]], attributes), {
      hint,
    });
  }
  if (each.type === "array") {
    const value = (each.examples?.[0] ?? each.default).join(" ");
    const title = named(key).replace(/^./, (first) => first.toUpperCase());
    return field(title, input(name, { value, ...attributes }), { hint, check: isList(each.items) });
  }
  const placeholder = each.default ?? "automatic";
  const control = input(name, { inputmode: "decimal", placeholder, ...attributes });
  return field(named(key), control, { hint, check: optional(isOption(each)) });
}

// Entries are separated by spaces: in some countries a comma is a decimal sign.
const entries = (text) =>
  text
    .split(/[\s;]+|,\s+/)
    .filter(Boolean)
    .map(numberOf);

function isList({ minimum, maximum }) {
  return (text) => {
    const found = entries(text);
    const fit = found.length && found.every((each) => each >= minimum && each <= maximum);
    return fit ? "" : `Enter numbers between ${number(minimum)} and ${number(maximum)}, separated by spaces.`;
  };
}

function isOption({ type, minimum = -Infinity, maximum = Infinity }) {
  return (text) => {
    const words = type === "integer" ? isWhole("", { least: -Infinity })(text) : isNumber("")(text);
    if (words || (numberOf(text) >= minimum && numberOf(text) <= maximum)) return words;
    if (!Number.isFinite(maximum)) return `Enter ${number(minimum)} or more.`;
    return `Enter a number from ${number(Math.max(minimum, 0))} to ${number(maximum)}.`;
  };
}

const READERS = {
  array: entries,
  boolean: (text) => text === "true",
  string: (text) => text,
};

// The options that were given in an element; those left empty follow the service's defaults.
export function readOptions(element) {
  const given = [...element.querySelectorAll("[data-option]")].filter(
    ({ value, disabled }) => value !== "" && !disabled,
  );
  return Object.fromEntries(
    given.map(({ dataset, value }) => [dataset.option, (READERS[dataset.type] ?? numberOf)(value)]),
  );
}
