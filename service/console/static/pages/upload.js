// Upload rows with progress, and say what became of them; bad rows with their lines, for the curator alone.

import { upload } from "../api.js";
import { announce, freshId, h, replace, toast } from "../dom.js";
import { checkbox, field } from "../forms.js";
import { bytes, COUNT, percent, plural } from "../format.js";
import { button, explain, facts, notice, table } from "../widgets.js";

const FEW_LINES = 8;

export function uploader(found, reload, place) {
  const file = h("input", { type: "file", name: "file", accept: ".csv,.parquet,.arrow,.npy,.npz" });
  const drop = checkbox("drop", "Leave bad rows out", { hint: "Otherwise one bad row refuses the whole file, and nothing is stored." });
  const start = button("Upload and seal", async () => {
    if (!file.files.length) {
      file.tell("Choose a file.");
      file.focus();
      return;
    }
    await run(found, file.files[0], drop.querySelector("input").checked, place, reload);
  }, "primary");
  const zone = h(
    "div",
    { class: "drop stack" },
    field("File", file, { hint: "CSV, Parquet, Arrow, NPY or NPZ. Drop it here, or choose it." }),
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
  return [h("p", { class: "muted" }, "Once. The dataset is then sealed and never changes again."), zone];
}

async function run(found, file, dropBad, place, reload) {
  const id = freshId("progress");
  const bar = h("progress", { max: String(file.size || 1), value: "0", "aria-labelledby": id });
  const words = h("p", { id, class: "small muted number" }, "Starting …");
  const began = performance.now();
  let told = 0;
  const { done, cancel } = upload(`/v1/datasets/${found.name}/data?on_bad_row=${dropBad ? "drop" : "refuse"}`, file, (sent, total) => {
    bar.value = sent;
    const seconds = (performance.now() - began) / 1000;
    words.textContent = sent >= total ? `All ${bytes(total)} sent. Reading and checking the rows …` : `${bytes(sent)} of ${bytes(total)} (${percent(sent / total)}), ${bytes(sent / Math.max(seconds, 0.001))} a second`;
    const quarter = Math.floor((4 * sent) / total);
    if (quarter > told) announce(`Upload ${percent(sent / total)}`);
    told = quarter;
  });
  replace(place, h("div", { class: "stack tight" }, words, bar, h("div", {}, h("button", { type: "button", class: "small", on: { click: cancel } }, "Cancel"))));
  try {
    const report = await done;
    toast(`${found.name} is sealed with ${plural(report.rows, "row")}.`);
    await reload();
  } catch (error) {
    if (error.name === "AbortError") replace(place, notice("warn", h("p", {}, "Cancelled. Nothing was stored.")));
    else replace(place, explain(error), badRows(error.body?.bad_row_lines ?? [], error.body?.bad_rows ?? 0));
  }
}

// Lines with the same reason in one row, so that a hundred missing values do not hide anything else.
function badRows(lines, total) {
  if (!lines.length) return null;
  const byReason = new Map();
  for (const { line, reason } of lines) byReason.set(reason, [...(byReason.get(reason) ?? []), COUNT.format(line)]);
  const rows = [...byReason].map(([reason, found]) => [reason, COUNT.format(found.length), `${found.slice(0, FEW_LINES).join(", ")}${found.length > FEW_LINES ? ", …" : ""}`]);
  return h("div", { class: "stack tight" }, h("h3", {}, `Bad rows${total > lines.length ? ` (the first ${lines.length} of ${COUNT.format(total)})` : ""}`), table([{ name: "What is wrong" }, { name: "Rows", right: true }, { name: "Lines" }], rows, { label: "Bad rows" }));
}

export function uploadReport(report) {
  return [
    facts([
      ["Rows", COUNT.format(report.rows)],
      ["Outside the bounds", `${plural(report.clipped_rows, "row")}, pulled to their edge`],
      ["Left out", `${plural(report.bad_rows, "bad row")}${report.rows_over_limit ? `, ${plural(report.rows_over_limit, "row")} beyond the limit per person` : ""}`],
      report.ignored_columns.length > 0 && ["Ignored columns", report.ignored_columns.slice(0, 12).join(", ")],
      ["File", `${report.format.toUpperCase()}, ${bytes(report.bytes)}`],
      ["SHA-256", h("code", {}, report.sha256)],
    ]),
    h("p", { class: "small muted" }, "These numbers come from the rows: they are for you alone, and analysts never see them."),
    badRows(report.bad_row_lines, report.bad_rows),
  ];
}
