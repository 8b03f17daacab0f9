// Several text files with the same first line, as one file: parts of an export that one dataset shall hold.

const MOST_NAMES = 1 << 18;
const LINE_END = 10;

/**
 * Files as one.
 * @param {File[]} files
 * @returns {Promise<{file?: File, problem?: string}>} the file, or why these cannot be joined
 */
export async function joined(files) {
  if (files.length === 1) return { file: files[0] };
  const parts = [];
  let names = null;
  for (const file of files) {
    const start = new Uint8Array(await file.slice(0, MOST_NAMES).arrayBuffer());
    const end = start.indexOf(LINE_END) + 1;
    const line = start.slice(0, end);
    if (!end || line.includes(0)) return { problem: notText(file) };
    const first = textOf(line).trimEnd();
    if (names !== null && first !== names) return { problem: otherColumns(file, files[0]) };
    parts.push(names === null ? file : file.slice(end));
    if (new Uint8Array(await file.slice(-1).arrayBuffer())[0] !== LINE_END) parts.push("\n");
    names = first;
  }
  return { file: new File(parts, files[0].name) };
}

// Whatever encoding the dataset declares: only whether lines are the same matters here.
function textOf(bytes) {
  const text = new TextDecoder().decode(bytes);
  return text.includes("\ufffd") ? new TextDecoder("latin1").decode(bytes) : text;
}

function notText({ name }) {
  return (
    `${name} is not delimited text, or it is in UTF-16. Only other text files are uploaded together; ` +
    "choose a single file of any other format."
  );
}

function otherColumns({ name }, first) {
  return (
    `The first line of ${name} is not that of ${first.name}. Files that are uploaded together have the ` +
    "same columns in the same order."
  );
}
