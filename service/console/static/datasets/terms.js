// What a grant is for, by which permit and until when: in words, as fields, and as it is sent.

import { get } from "../api.js";
import { h } from "../dom.js";
import { checkbox, field, input } from "../forms.js";
import { moment } from "../format.js";

// The end of a day here; a grant's end is shown and chosen as its last day.
function endOfDay(day) {
  const end = new Date(`${day}T00:00`);
  end.setDate(end.getDate() + 1);
  return end;
}

function lastDay(moment) {
  const day = new Date(new Date(moment).getTime() - 1);
  const two = (number) => String(number).padStart(2, "0");
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
}

// What a grant is for, by which permit, and until when.
export function termsInWords(grant) {
  const parts = [
    grant.purpose,
    grant.permit && `permit ${grant.permit}`,
    grant.ends_at && `until ${moment(grant.ends_at)}`,
  ].filter(Boolean);
  return parts.length > 0 && h("div", { class: "small muted" }, parts.join(" · "));
}

export function termFields(
  grant,
  endHint = "After it the grant is as if withdrawn. Leave it empty for no end.",
) {
  return [
    field("Purpose", input("purpose", { maxlength: "2000", value: grant?.purpose ?? "" }), {
      hint: "What the data may be used for. It stands in receipts and in the ledger's table.",
    }),
    field("Permit", input("permit", { maxlength: "128", value: grant?.permit ?? "" }), {
      hint: "Its number, if there is one.",
    }),
    field("Last day", input("until", { type: "date", value: grant?.ends_at ? lastDay(grant.ends_at) : "" }), {
      hint: endHint,
    }),
  ];
}

export function keepsResults(grant) {
  return checkbox("keeps_results", "Results can be read after the last day", {
    checked: grant?.keeps_results ?? true,
  });
}

// The terms that a form says; an empty last day is no end.
export function readTerms(data) {
  const day = data.get("until");
  return {
    purpose: data.get("purpose").trim(),
    permit: data.get("permit").trim(),
    ends_at: day ? endOfDay(day).toISOString() : null,
  };
}

// A box that allows questions next to clusterings; kinds that were chosen one by one elsewhere stay as they are
// unless it is changed.
export function questionsBox(kinds) {
  const asks = Boolean(kinds && kinds.length > 1);
  const element = checkbox("questions", "Questions too", {
    checked: asks,
    hint:
      "Profiles of clusters, tables, quantiles and summaries, within the same cap; else " +
      "clusterings alone.",
  });
  const read = async (data) => {
    if (kinds && data.has("questions") === asks) return {};
    if (!data.has("questions")) return { kinds: ["cluster"] };
    return { kinds: ["cluster", ...(await get("/v1/kinds")).items.map((each) => each.name)] };
  };
  return { element, read };
}
