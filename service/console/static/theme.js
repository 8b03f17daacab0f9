// Applies the chosen colours before the first paint; a classic script because modules run after it.
try {
  const chosen = localStorage.getItem("cairn.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be switched off; the system's own preference is then used.
}
