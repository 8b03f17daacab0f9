// The file that a draft was described from, kept for its upload as long as the page is not left.

let kept = null;

export function keepFile(dataset, file) {
  kept = file && { dataset, file };
}

// Puts the file into a control of the dataset's page, once.
export function offerFile(dataset, control) {
  if (kept?.dataset !== dataset) return;
  const held = new DataTransfer();
  held.items.add(kept.file);
  control.files = held.files;
  kept = null;
}
