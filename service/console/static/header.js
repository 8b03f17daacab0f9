// Names of columns in the first line of a delimited text file, read in the browser; nothing is sent.

const SEPARATORS = [",", ";", "\t", "|"];
const DATA = /^$|^[+-]?[\d.,  '’]*\d(e[+-]?\d+)?%?$|^\d{1,4}[-./]\d{1,2}[-./]\d{1,4}|^(true|false|yes|no|nan|null|na)$/i;

function fields(line, separator) {
  const found = [];
  let field = "";
  let quoted = false;
  for (let i = 0; i < line.length; i += 1) {
    const sign = line[i];
    if (quoted && sign === '"' && line[i + 1] === '"') field += line[(i += 1)];
    else if (sign === '"') quoted = !quoted;
    else if (sign === separator && !quoted) {
      found.push(field.trim());
      field = "";
    } else field += sign;
  }
  return [...found, field.trim()];
}

// The names, or in words why the first line has none. A row of data is never taken for names: names are public.
export function namesIn(text) {
  const line = text.replace(/^\ufeff/, "").split(/\r\n|\n|\r/, 1)[0];
  const [names] = SEPARATORS.map((separator) => fields(line, separator)).sort((a, b) => b.length - a.length);
  if (!line.trim()) return { problem: "The first line of this file is empty. Put the names of the columns there." };
  if (names.some((name) => DATA.test(name))) return { problem: "The first line of this file looks like data, not like names of columns, so nothing was taken from it. Names are public: put them into a first line, or type them here." };
  return { names };
}

// Bounds that follow from what a column means, by words in its name.
const TEMPLATES = [
  [/\bage\b|\balter\b/i, 0, 120],
  [/\bbmi\b/i, 10, 80],
  [/percent|\bpct\b|%/i, 0, 100],
  [/\bhour\b/i, 0, 24],
  [/\blat(itude)?\b/i, -90, 90],
  [/\b(lon|lng|longitude)\b/i, -180, 180],
];

export function usualBounds(name) {
  const [, low, high] = TEMPLATES.find(([pattern]) => pattern.test(name.replaceAll("_", " "))) ?? [];
  return low === undefined ? null : { low, high };
}
