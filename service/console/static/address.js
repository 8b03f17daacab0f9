// The address of what is shown: a page and, after a question mark, the filters and the view chosen on it.

/** The page, without filters: `#/jobs`. */
export const place = () => location.hash.split("?")[0];

/** The filters and the view of this page. */
export const filters = () => new URLSearchParams(location.hash.split("?")[1] ?? "");

/**
 * Puts a filter into the address, or takes it out if it is empty. The page itself stays.
 * @param {string} name
 * @param {string} value
 */
export function setFilter(name, value) {
  const now = filters();
  if (value) now.set(name, value);
  else now.delete(name);
  const query = now.toString();
  history.replaceState(history.state, "", place() + (query && `?${query}`));
}
