// Rows of a draft: upload them with progress, read the report on them, seal them or throw them away.

import { patch, post, remove, upload } from "../api.js";
import { offerFile } from "../datasets/chosen-file.js";
import { announce, freshId, h, replace, toast } from "../dom.js";
import { checkbox, field, form, submit } from "../forms.js";
import { bytes, COUNT, percent, plural } from "../format.js";
import { joined } from "../datasets/joined-files.js";
import { accepted, readingProposal } from "../datasets/reading.js";
import { button, confirm, explain, facts, notice, table } from "../widgets.js";

const FEW_LINES = 8;

// Where the rows of a draft are: of a dataset, or of one of its periods.
const placeOf = (found) => `/v1/datasets/${found.name}${found.period ? `/periods/${found.period}` : ""}`;
const titleOf = (found) => (found.period ? `${found.period} of ${found.name}` : found.name);

export function uploader(found, reload, place) {
  /** @type {HTMLInputElement & import("../dom.js").Guarded} */
  const file = h("input", {
    type: "file",
    name: "file",
    multiple: true,
    accept: ".csv,.tsv,.txt,.gz,.xlsx,.xls,.ods,.parquet,.arrow,.npy,.npz",
  });
  offerFile(found.name, file);
  const hint = found.table
    ? "Those with unreadable values or unknown levels. Otherwise a single one makes the whole " +
      "upload fail. What a missing value means is declared for each column."
    : "Otherwise a single bad row makes the whole upload fail, and nothing is stored.";
  const drop = checkbox("drop", "Leave bad rows out", { hint });
  const start = button(
    "Upload and check",
    async () => {
      if (!file.files.length) {
        file.tell("Choose a file.");
        file.focus();
        return;
      }
      const whole = await joined([...file.files]);
      if (whole.problem) file.tell(whole.problem);
      else await run(found, whole.file, drop.querySelector("input").checked, place, reload);
    },
    "primary",
  );
  const zone = h(
    "div",
    { class: "drop stack" },
    field("File", file, {
      hint:
        "CSV written as this dataset declares (gzip, too), Excel, Parquet, Arrow, NPY or NPZ. " +
        "Drop it here, or choose it. Several CSV files with the same first line count as one.",
    }),
    drop,
    h("div", {}, start),
  );
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    if (event.dataTransfer.files.length) file.files = event.dataTransfer.files;
  });
  return [
    h(
      "p",
      { class: "muted" },
      found.upload
        ? "These rows replace the ones above."
        : "They are checked first, and used only once you seal them.",
    ),
    zone,
  ];
}

async function run(found, file, dropBad, place, reload) {
  const id = freshId("progress");
  const bar = h("progress", { max: String(file.size || 1), value: "0", "aria-labelledby": id });
  const words = h("p", { id, class: "small muted number" }, "Starting …");
  const again = async (proposed) => {
    await patch(`/v1/datasets/${found.name}`, { reading: accepted(proposed) });
    await run(found, file, dropBad, place, reload);
  };
  const began = performance.now();
  let told = 0;
  const { done, cancel } = upload(
    `${placeOf(found)}/data?on_bad_row=${dropBad ? "drop" : "refuse"}`,
    file,
    (sent, total) => {
      bar.value = sent;
      const seconds = (performance.now() - began) / 1000;
      words.textContent =
        sent >= total
          ? `All ${bytes(total)} sent. Reading and checking the rows …`
          : `${bytes(sent)} of ${bytes(total)} (${percent(sent / total)}), ` +
            `${bytes(sent / Math.max(seconds, 0.001))} a second`;
      const quarter = Math.floor((4 * sent) / total);
      if (quarter > told) announce(`Upload ${percent(sent / total)}`);
      told = quarter;
    },
  );
  replace(
    place,
    h(
      "div",
      { class: "stack tight" },
      words,
      bar,
      h("div", {}, h("button", { type: "button", class: "small", on: { click: cancel } }, "Cancel")),
    ),
  );
  try {
    const report = await done;
    toast(`${plural(report.rows, "row")} of ${titleOf(found)} checked. Look at the report, then seal them.`);
    await reload();
  } catch (error) {
    if (error.name === "AbortError")
      replace(place, notice("warn", h("p", {}, "Cancelled. Nothing was stored.")));
    else
      replace(
        place,
        explain(error),
        otherReading(error.body?.reading, again),
        columnReport(error.body?.columns ?? []),
        badRows(error.body?.bad_row_lines ?? [], error.body?.bad_rows ?? 0),
      );
  }
}

// What a refused file seems to be, with a button that declares it and uploads the file again.
function otherReading(proposed, again) {
  return (
    proposed &&
    readingProposal(
      proposed,
      button("Read it like this", () => again(proposed), "primary"),
    )
  );
}

// Lines with the same reason in one row, so that a hundred missing values do not hide anything else.
function badRows(lines, total) {
  if (!lines.length) return null;
  const byReason = new Map();
  for (const { line, reason } of lines)
    byReason.set(reason, [...(byReason.get(reason) ?? []), COUNT.format(line)]);
  const rows = [...byReason].map(([reason, found]) => [
    reason,
    COUNT.format(found.length),
    `${found.slice(0, FEW_LINES).join(", ")}${found.length > FEW_LINES ? ", …" : ""}`,
  ]);
  return h(
    "div",
    { class: "stack tight" },
    h(
      "h3",
      {},
      `Bad rows${total > lines.length ? ` (the first ${lines.length} of ${COUNT.format(total)})` : ""}`,
    ),
    table([{ name: "What is wrong" }, { name: "Rows", right: true }, { name: "Lines" }], rows, {
      label: "Bad rows",
    }),
  );
}

const FORMATS = { excel: "spreadsheet", parquet: "Parquet", arrow: "Arrow", npy: "NPY", npz: "NPZ" };
// How a file was read; only delimited text has separators.
const fileWords = ({ format, read_as: read }) =>
  FORMATS[format] ? [FORMATS[format]] : ["text", read].filter(Boolean);

export function uploadReport(report) {
  return [
    facts([
      ["Rows", COUNT.format(report.rows)],
      ["Outside the bounds", `${plural(report.clipped_rows, "row")}, clipped to them`],
      [
        "Left out",
        plural(report.bad_rows - report.gap_rows, "bad row") +
          (report.gap_rows ? `, ${plural(report.gap_rows, "row")} with gaps, as declared` : "") +
          (report.rows_over_limit
            ? `, ${plural(report.rows_over_limit, "row")} beyond the limit per person`
            : ""),
      ],
      report.ignored_columns.length > 0 && [
        "Ignored columns",
        report.ignored_columns.slice(0, 12).join(", "),
      ],
      ["File", [...fileWords(report), bytes(report.bytes)].join(", ")],
      ["SHA-256", h("code", {}, report.sha256)],
    ]),
    columnReport(report.columns),
    h(
      "p",
      { class: "small muted" },
      "These numbers come from the rows: they are for you alone, and analysts never see them.",
    ),
    badRows(report.bad_row_lines, report.bad_rows - report.gap_rows),
  ];
}

function columnReport(columns) {
  if (!columns.length) return null;
  const count = (number) => (number ? COUNT.format(number) : "–");
  const leveled = columns.some((each) => each.unknown);
  const rows = columns.map((each) => [
    h("code", {}, each.name),
    count(each.missing),
    count(each.unreadable),
    ...(leveled ? [count(each.unknown)] : []),
    count(each.below),
    count(each.above),
    each.examples.length ? each.examples.map((value) => h("code", { class: "example" }, value)) : "–",
  ]);
  const headings = [
    { name: "Column" },
    { name: "Missing", right: true },
    { name: "Unreadable", right: true },
    ...(leveled ? [{ name: "Unknown level", right: true }] : []),
    { name: "Below", right: true },
    { name: "Above", right: true },
    { name: "For example" },
  ];
  return h(
    "div",
    { class: "stack tight" },
    h("h3", {}, "Columns"),
    table(headings, rows, { label: "Columns with findings" }),
  );
}

// The report on a draft's rows, with a box to tick for each doubt, and the two ways on.
export function lookBeforeSeal(found, reload) {
  const report = found.upload;
  const throwsAway = !found.period && !found.correction; // else the draft is discarded with them
  const boxes = report.doubts.map((doubt) => {
    const box = checkbox("confirm", `${doubt.detail}.`, { hint: "Tick this if it is as it should be." });
    box.querySelector("input").value = doubt.confirm;
    return box;
  });
  const seal = form(
    { "data-kept": "no" },
    [
      boxes.length > 0 && notice("warn", h("p", {}, "Look again before you seal these rows:")),
      boxes,
      h(
        "div",
        { class: "row" },
        submit(
          found.correction ? "Seal the correction" : found.period ? "Seal the period" : "Seal the dataset",
        ),
        throwsAway && button("Throw the rows away", () => throwAway(found, reload), "quiet"),
      ),
      h(
        "p",
        { class: "small muted" },
        "Sealed rows change only by a correction. Examples of values are deleted with the seal.",
      ),
    ],
    async (data) => {
      await post(`${placeOf(found)}/seal`, {
        confirm: data.getAll("confirm"),
        sha256: report.sha256,
      });
      toast(`${titleOf(found)} is sealed with ${plural(report.rows, "row")}.`);
      await reload();
    },
  );
  return [
    uploadReport(report),
    report.rows
      ? seal
      : [
          notice("bad", h("p", {}, "No row can be used, so there is nothing to seal.")),
          throwsAway &&
            h(
              "div",
              {},
              button("Throw the rows away", () => throwAway(found, reload), "quiet"),
            ),
        ],
  ];
}

async function throwAway(found, reload) {
  confirm(
    "Throw these rows away?",
    "The rows and the report on them are deleted. The draft stays, and you can upload again.",
    "Throw them away",
    async () => {
      await remove(`/v1/datasets/${found.name}/data`);
      toast("The rows are deleted.");
      await reload();
    },
  );
}
