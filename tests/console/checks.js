// What every page must keep, checked inside the browser; each function answers a list of complaints.

function visible(element) {
  return element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
}

function nameOf(element) {
  const labels = element.labels ? [...element.labels].map((label) => label.textContent).join(" ") : "";
  const titled = document.getElementById(element.getAttribute("aria-labelledby") ?? "")?.textContent;
  return (element.getAttribute("aria-label") || labels || titled || element.textContent || "").trim();
}

// Controls and pictures have names, ids are unique, headings are in order, no style stands in an attribute.
function basics() {
  const found = [];
  const named = "button, a[href], input, select, textarea, [role=img], [role=region], dialog";
  for (const e of document.querySelectorAll(named)) {
    if (e.checkVisibility() && !nameOf(e)) found.push(`no name: ${e.outerHTML.slice(0, 120)}`);
  }
  for (const e of document.querySelectorAll("img:not([alt])")) found.push(`no alt: ${e.outerHTML}`);
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of new Set(ids)) if (ids.filter((each) => each === id).length > 1) found.push(`twice: ${id}`);
  for (const e of document.querySelectorAll("[aria-describedby]")) {
    for (const id of e.getAttribute("aria-describedby").split(" ")) {
      if (!ids.includes(id)) found.push(`describes nothing: ${id}`);
    }
  }
  const headings = [...document.querySelectorAll("h1, h2, h3, h4")].filter(visible);
  if (headings.filter((e) => e.tagName === "H1").length !== 1) found.push("not one h1");
  headings.reduce((level, e) => {
    const now = Number(e.tagName[1]);
    if (now > level + 1) found.push(`skipped a level: ${e.textContent}`);
    return now;
  }, 0);
  if (!document.documentElement.lang || !document.title) found.push("no language or no title");
  for (const e of document.querySelectorAll("[style]")) {
    // Custom properties set by script are data for the style sheet, not styles.
    const rest = e.getAttribute("style").replace(/--[\w-]+:[^;]*;?/g, "").trim();
    if (rest) found.push(`style: ${e.outerHTML.slice(0, 80)}`);
  }
  return found;
}

// WCAG 2 contrast of every visible text against the nearest opaque background behind it.
function contrast() {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgb = (text) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const words = walker.currentNode.data.trim();
    const element = walker.currentNode.parentElement;
    if (!words || !visible(element) || element.closest(".unseen, .skip, [disabled], option")) continue;
    const style = getComputedStyle(element);
    const ink = rgb(element instanceof SVGElement ? style.fill : style.color);
    let back = element;
    while (back && rgb(getComputedStyle(back).backgroundColor)[3] < 255) back = back.parentElement;
    const paper = rgb(getComputedStyle(back ?? document.documentElement).backgroundColor);
    const [bright, dim] = [light(ink), light(paper)].sort((a, b) => b - a);
    const ratio = (bright + 0.05) / (dim + 0.05);
    const least = parseFloat(style.fontSize) >= 24 ? 3 : 4.5;
    if (ratio < least) found.push(`${ratio.toFixed(2)}: ${words.slice(0, 40)}`);
  }
  return found;
}
