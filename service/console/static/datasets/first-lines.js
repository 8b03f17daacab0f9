// What the first lines of a file suggest about its dataset. The service says so; nothing is inferred here.

import { preview } from "../api.js";

const MOST_BYTES = 1 << 18; // what the service reads of a text file
const GZIP = [0x1f, 0x8b];
const UTF_16 = [
  [0xff, 0xfe],
  [0xfe, 0xff],
];
const begins = (bytes, mark) => mark.every((each, i) => bytes[i] === each);

/**
 * Ask the service for a proposal, which it makes from the start of a file without storing anything.
 * @param {File} file
 * @param {"names"|"data"} firstLine what the first line of a text file or a sheet holds
 * @returns {Promise<object>} the answer of `POST /v1/previews`
 */
export async function firstLines(file, firstLine = "names") {
  return preview(await startOf(file), firstLine);
}

/**
 * The part of a file that a proposal is made from: the first lines of text, all of any other format.
 * @param {File} file
 * @returns {Promise<File>}
 */
export async function startOf(file) {
  const found = new Uint8Array(await file.slice(0, MOST_BYTES).arrayBuffer());
  const bytes = begins(found, GZIP) ? await unpackedStart(file) : found;
  return bytes && isText(bytes) ? new File([bytes], file.name) : file;
}

// Other formats contain zero bytes.
function isText(bytes) {
  return UTF_16.some((mark) => begins(bytes, mark)) || !bytes.includes(0);
}

// Nothing for a damaged file: the service says what is wrong with it.
async function unpackedStart(file) {
  const reader = file.stream().pipeThrough(new DecompressionStream("gzip")).getReader();
  const pieces = [];
  let length = 0;
  try {
    while (length < MOST_BYTES) {
      const { value, done } = await reader.read();
      if (done) break;
      pieces.push(value);
      length += value.length;
    }
  } catch {
    return null;
  }
  reader.cancel().catch(() => {});
  const unpacked = await new Blob(pieces).arrayBuffer();
  return new Uint8Array(unpacked).slice(0, MOST_BYTES);
}
