// The first lines of a delimited text file as people have it, read in the browser; nothing is sent.

const SEPARATORS = [[",", "commas"], [";", "semicolons"], ["\t", "tabs"], ["|", "vertical bars"]];
const MOST_BYTES = 1 << 18;
const MOST_RECORDS = 500;
const BLANKS = "\\u0020\\u00a0\\u202f\\u2009'’"; // also between groups of three digits
const PLAIN = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;
const DATA = /^[+-]?[\d.,\s'’]*\d(e[+-]?\d+)?\s?%?$|^\d{1,4}[-./]\d{1,2}[-./]\d{1,4}|^(true|false|yes|no|nan|null|none|na|n\/a)$/i;

// Files that the service reads, by how they begin.
const OTHERS = [
  [[0x50, 0x4b, 0x03, 0x04], "an Excel or OpenDocument file"],
  [[0xd0, 0xcf, 0x11, 0xe0], "an old Excel file"],
  [[0x50, 0x41, 0x52, 0x31], "a Parquet file"],
  [[0x41, 0x52, 0x52, 0x4f, 0x57, 0x31], "an Arrow file"],
  [[0xff, 0xff, 0xff, 0xff], "an Arrow stream"],
];
const NPY = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];
const GZIP = [0x1f, 0x8b];
const begins = (bytes, mark) => mark.every((each, i) => bytes[i] === each);

// What a file holds as far as its first lines tell, or in words why that cannot be told; `other` names a format that
// only the service reads.
export async function readStart(file) {
  let bytes = new Uint8Array(await file.slice(0, MOST_BYTES).arrayBuffer());
  if (begins(bytes, GZIP)) bytes = await unpacked(file);
  if (!bytes) return { problem: "This gzip file is damaged. Compress it again." };
  const other = OTHERS.find(([mark]) => begins(bytes, mark));
  if (other) return { other: other[1], problem: `This is ${other[1]}, and only delimited text is read here. Type the columns, or save the table as CSV.` };
  if (begins(bytes, NPY)) return { problem: "This is an NPY file, which has no column names. Describe the columns by hand; the file itself can be uploaded as it is." };
  const { text, encoding } = decoded(bytes);
  if (text.includes("\0")) return { problem: "This is not a text file. Choose a CSV file, or describe the columns by hand." };
  return recognise(text, { encoding, cut: bytes.length >= MOST_BYTES });
}

async function unpacked(file) {
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
  return new Uint8Array(await new Blob(pieces).arrayBuffer());
}

function decoded(bytes) {
  if (begins(bytes, [0xff, 0xfe])) return { text: new TextDecoder("utf-16le").decode(bytes), encoding: "UTF-16" };
  if (begins(bytes, [0xfe, 0xff])) return { text: new TextDecoder("utf-16be").decode(bytes), encoding: "UTF-16" };
  try {
    // As a stream, because the bytes may end in the middle of a character.
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: true }), encoding: "UTF-8" };
  } catch {
    return { text: new TextDecoder("latin1").decode(bytes), encoding: "Latin-1" };
  }
}

// Names (null where the first line holds data), records, separator and decimal sign of a text.
export function recognise(text, { encoding = "UTF-8", cut = false } = {}) {
  const guesses = SEPARATORS.map(([separator, words]) => {
    const records = recordsOf(text, separator, cut);
    return { separator, words, records, fit: fit(records) };
  });
  const [best] = guesses.sort((a, b) => b.fit - a.fit);
  if (!best.records.length) return { problem: "The first line of this file is empty. Put the names of the columns there." };
  const [first, ...rest] = best.records;
  const named = !looksLikeData(first, rest);
  const decimal = decimalOf(best.records);
  return {
    names: named ? first : null,
    records: named ? rest.filter((each) => each.length === first.length) : best.records.filter((each) => each.length === first.length),
    first,
    separator: best.separator,
    decimal,
    words: [`separated by ${best.words}`, decimal === "," && "with decimal commas", encoding].filter(Boolean).join(", "),
  };
}

// Fields in quotes may hold separators, quotes and ends of lines.
function recordsOf(text, separator, cut) {
  const records = [];
  let record = [];
  let field = "";
  let quoted = false;
  const end = () => {
    record.push(field.trim());
    field = "";
  };
  const close = () => {
    end();
    if (record.length > 1 || record[0]) records.push(record);
    record = [];
  };
  const plain = text.replace(/^\ufeff/, "");
  for (let i = 0; i < plain.length && records.length < MOST_RECORDS; i += 1) {
    const sign = plain[i];
    if (quoted && sign === '"' && plain[i + 1] === '"') field += plain[(i += 1)];
    else if (sign === '"') quoted = !quoted;
    else if (quoted) field += sign;
    else if (sign === separator) end();
    else if (sign === "\n" || sign === "\r") close();
    else field += sign;
  }
  if (!cut && records.length < MOST_RECORDS) close();
  return records;
}

// More fields are better, as long as most lines have as many as the first.
function fit(records) {
  const width = records[0]?.length ?? 0;
  const alike = records.filter((each) => each.length === width).length;
  return width > 1 && alike > 0.9 * records.length ? width : width / 1000;
}

// A row of data is never taken for names, because names are public. Beside numbers and dates it is given away by
// a text that stands again below in the same column.
function looksLikeData(first, rest) {
  const written = first.filter((name, j) => name || j > 0); // programs leave the name of an index empty
  if (!written.length || written.some((name) => !name || DATA.test(name))) return true;
  return first.some((name, j) => name && rest.some((each) => each[j] === name));
}

function decimalOf(records) {
  const votes = { ",": 0, ".": 0 };
  for (const field of records.flat()) {
    const sign = decimalSign(field);
    if (sign) votes[sign] += 1;
  }
  return votes[","] && !votes["."] ? "," : ".";
}

// Nothing where it may as well be a mark between groups of digits.
function decimalSign(text) {
  if (!new RegExp(`^[+-]?[\\d.,${BLANKS}]*\\d$`).test(text)) return "";
  const marks = [...text].filter((sign) => ",.".includes(sign));
  const kinds = new Set(marks).size;
  if (!marks.length || (marks.length > 1 && kinds === 1)) return "";
  if (kinds === 1 && /^[+-]?[1-9]\d{0,2}[.,]\d{3}$/.test(text)) return "";
  return marks[marks.length - 1];
}

// The number that a text stands for, as the service reads it; NaN where it is none.
export function readNumber(text, decimal) {
  if (decimal === "." && PLAIN.test(text)) return Number(text);
  const other = decimal === "." ? "," : ".";
  const grouped = new RegExp(`^[+-]?\\d{1,3}([${other}${BLANKS}])\\d{3}(\\1\\d{3})*([${decimal}]\\d*)?$`);
  const marks = new RegExp(`[${other}${BLANKS}]`, "g");
  const joined = grouped.test(text) ? text.replace(marks, "") : text;
  const plain = joined.replace(decimal, ".");
  return !joined.includes(other) && PLAIN.test(plain) ? Number(plain) : NaN;
}
