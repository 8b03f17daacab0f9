// Several text files with the same first line, as one file: parts of an export that one dataset shall hold.

const MOST_NAMES = 1 << 18;
const LINE_END = 10;

// A file, or in words why these cannot be joined.
export async function joined(files) {
  if (files.length === 1) return { file: files[0] };
  const parts = [];
  let names = null;
  for (const file of files) {
    const start = new Uint8Array(await file.slice(0, MOST_NAMES).arrayBuffer());
    const end = start.indexOf(LINE_END) + 1;
    const first = new TextDecoder().decode(start.slice(0, end)).trimEnd();
    if (!end || start.slice(0, end).includes(0) || first.includes("\ufffd")) return { problem: `${file.name} is no delimited text in UTF-8. Only such files are uploaded together; choose a single file of any other format.` };
    if (names !== null && first !== names) return { problem: `The first line of ${file.name} is not that of ${files[0].name}. Files that are uploaded together have the same columns in the same order.` };
    parts.push(names === null ? file : file.slice(end));
    if (new Uint8Array(await file.slice(-1).arrayBuffer())[0] !== LINE_END) parts.push("\n");
    names = first;
  }
  return { file: new File(parts, files[0].name) };
}
