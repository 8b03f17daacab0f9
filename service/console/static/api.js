// The HTTP API as functions. A key is sent once, to sign in, and is not kept.

import { sentence, withPowers } from "./format.js";

const RECONNECT = "Check the connection and that the service is running, then try again.";
const MARK = "cairn.signed-in";
const BACK = "cairn.signed-in.back";

export class Problem extends Error {
  constructor(body, status, retryAfter) {
    super(body.detail || body.title || "The service gave no reason.");
    this.body = body;
    this.status = status;
    this.slug = String(body.type || "")
      .split("/")
      .pop();
    this.retryAfter = retryAfter;
  }
}

// A session of the service. Its cookie is out of reach of scripts, so a mark in local storage says whether
// there may be one: without it the page for signing in is shown at once.
export const session = {
  get mayExist() {
    try {
      return localStorage.getItem(MARK) !== null;
    } catch {
      return true; // storage is switched off: ask the service
    }
  },
  async start(key, remember) {
    await call("POST", "/v1/sessions", { body: { remember }, key });
    mark((storage) => storage.setItem(MARK, "yes"));
  },
  // Leaves for a provider, to come back as somebody who is signed in.
  depart(provider) {
    inTab((storage) => storage.setItem(BACK, location.hash));
    location.assign(`/sign-in/${provider}`);
  },
  // Comes back from a provider: the address of the page that was left.
  arrive() {
    mark((storage) => storage.setItem(MARK, "yes"));
    const back = inTab((storage) => storage.getItem(BACK));
    return back?.startsWith("#/") && back !== "#/sign-in" ? back : "#/";
  },
  // Ends the session; returns where to sign out of the provider that it came from, if there is such a place.
  async end() {
    const current = (await get("/v1/sessions")).items.find((each) => each.current);
    await remove("/v1/sessions/current");
    this.forget();
    return current?.sign_out_url;
  },
  forget() {
    mark((storage) => storage.removeItem(MARK));
  },
};

function inTab(act) {
  try {
    return act(sessionStorage);
  } catch {
    return null; // without storage the first page is shown
  }
}

function mark(change) {
  try {
    change(localStorage);
  } catch {
    // Without storage the service is asked each time.
  }
}

// What to do about it, in the words of the service.
export const nextStep = (problem) => problem.body.next ?? "";

// The job is there, but not its result: it has not ended, or was cancelled.
export function lacksResult(problem) {
  return problem.slug === "not-found" && problem.body.state !== undefined;
}

export function inWords(error) {
  if (!(error instanceof Problem)) return `Something went wrong in the page: ${error.message}.`;
  return sentence(withPowers(error.message));
}

/** @type {(problem: Problem) => void} */
let onUnauthorized = () => {};
export function whenUnauthorized(act) {
  onUnauthorized = act;
}

/**
 * @typedef {{
 *   body?: any, accept?: string, signal?: AbortSignal, idempotencyKey?: string, key?: string
 * }} SendOptions
 */

/**
 * @param {string} verb
 * @param {string} path
 * @param {SendOptions} [options]
 */
async function send(verb, path, { body, accept = "application/json", signal, idempotencyKey, key } = {}) {
  const headers = { Accept: accept };
  const isFile = body instanceof Blob;
  if (body !== undefined)
    headers["Content-Type"] = isFile ? kindOf(/** @type {File} */ (body).name) : "application/json";
  if (idempotencyKey) headers["Idempotency-Key"] = idempotencyKey;
  if (key) headers.Authorization = `Bearer ${key}`;
  let response;
  try {
    response = await fetch(path, {
      method: verb,
      headers,
      body: body === undefined || isFile ? body : JSON.stringify(body),
      signal,
      credentials: "same-origin",
      cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw offline();
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

export function offline() {
  return new Problem({ type: "/problems/offline", detail: "The service did not answer", next: RECONNECT }, 0);
}

async function problemOf(response) {
  let body;
  try {
    body = await response.json();
  } catch {
    body = { title: response.statusText, detail: `The service answered ${response.status}` };
  }
  const problem = new Problem(body, response.status, Number(response.headers.get("Retry-After")) || null);
  if (problem.status === 401) onUnauthorized(problem);
  return problem;
}

/**
 * @param {string} verb
 * @param {string} path
 * @param {SendOptions} [options]
 */
export async function call(verb, path, options) {
  const response = await send(verb, path, options);
  return response.status === 204 ? null : response.json();
}

/** @param {string} path @param {SendOptions} [options] */
export const get = (path, options) => call("GET", path, options);
/** @param {string} path @param {any} [body] @param {SendOptions} [options] */
export const post = (path, body, options) => call("POST", path, { ...options, body });
/** @param {string} path @param {any} body @param {SendOptions} [options] */
export const put = (path, body, options) => call("PUT", path, { ...options, body });
/** @param {string} path @param {any} body @param {SendOptions} [options] */
export const patch = (path, body, options) => call("PATCH", path, { ...options, body });
/** @param {string} path @param {SendOptions} [options] */
export const remove = (path, options) => call("DELETE", path, options);

// One answer with the seconds after which there may be news.
export async function poll(path, signal) {
  const response = await send("GET", path, { signal });
  return { body: await response.json(), retryAfter: Number(response.headers.get("Retry-After")) || null };
}

// A list that is read page by page.
export function pages(path, limit = 50) {
  const joint = path.includes("?") ? "&" : "?";
  let cursor = null;
  let done = false;
  return {
    get done() {
      return done;
    },
    async next() {
      const from = cursor ? `&cursor=${encodeURIComponent(cursor)}` : "";
      const page = await get(`${path}${joint}limit=${limit}${from}`);
      cursor = page.next;
      done = !page.next;
      return page.items;
    },
  };
}

export async function all(path) {
  const list = pages(path, 200);
  const items = [];
  do items.push(...(await list.next()));
  while (!list.done);
  return items;
}

export async function download(path, accept, filename) {
  const response = await send("GET", path, { accept });
  save(await response.blob(), filename);
}

export function save(blob, filename) {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = filename;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

const KINDS = {
  csv: "text/csv",
  parquet: "application/vnd.apache.parquet",
  arrow: "application/vnd.apache.arrow.file",
  npy: "application/x-npy",
  npz: "application/x-npz",
};

export function kindOf(filename) {
  return KINDS[filename.split(".").pop().toLowerCase()] ?? "application/octet-stream";
}

/**
 * The service's proposal for a file; nothing of it is stored.
 * @param {File} start its first lines or, if it is not text, all of it
 * @param {"names"|"data"} firstLine what the first line holds
 * @returns {Promise<object>}
 */
export const preview = (start, firstLine) => post(`/v1/previews?first_line=${firstLine}`, start);

// XMLHttpRequest, because only it tells how much of an upload has been sent.
export function upload(path, file, onProgress) {
  const request = new XMLHttpRequest();
  const done = new Promise((resolve, reject) => {
    request.open("PUT", path);
    request.setRequestHeader("Accept", "application/json");
    request.setRequestHeader("Content-Type", kindOf(file.name));
    request.upload.addEventListener("progress", (event) =>
      onProgress(event.loaded, event.total || file.size),
    );
    request.addEventListener("load", () => {
      let body;
      try {
        body = JSON.parse(request.responseText);
      } catch {
        body = { detail: `The service answered ${request.status}` };
      }
      if (request.status < 300) resolve(body);
      else reject(new Problem(body, request.status));
    });
    request.addEventListener("error", () =>
      reject(
        new Problem(
          {
            type: "/problems/offline",
            detail: "The connection broke before the upload ended; nothing was stored",
            next: RECONNECT,
          },
          0,
        ),
      ),
    );
    request.addEventListener("abort", () => reject(new DOMException("cancelled", "AbortError")));
    request.send(file);
  });
  return { done, cancel: () => request.abort() };
}
