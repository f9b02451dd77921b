// SPDX-License-Identifier: Apache-2.0
// Requests to the daemon, with the token.

// The token lives in this page only: other views keep it, and it is gone with the page.
let token = "";

// "denied": a token is missing or its scope is too small ({text, changes}); "token": there is a new
// one; "lost" and "found": whether the daemon responds.
export const events = new EventTarget();
const report = (name, detail) => events.dispatchEvent(new CustomEvent(name, { detail }));

// What the daemon refused: its status (0: it did not respond) and its problem document.
export class Problem extends Error {
  constructor(text, status, document) {
    super(text);
    this.status = status;
    this.document = document;
  }
}

export function useToken(text) {
  token = text.trim();
  kept.clear();
  report("token");
}

function refused(status, detail) {
  const scope = (/scope (\w+)/.exec(detail) || [])[1];
  if (status === 403) return scope ? `This requires a token with the scope ${scope}.` : detail;
  if (token && !scope) return "This token is not valid.";
  return scope === "read" ? "Reading requires a token." : `This requires a token with the scope ${scope || "run"}.`;
}

// `used`: the token of the request. A refusal of one that was replaced meanwhile says nothing.
async function problem(response, method, used) {
  const document = await response.json().catch(() => ({ detail: `The daemon responds with ${response.status}` }));
  if (response.status !== 401 && response.status !== 403)
    return new Problem((document.member ? document.member + ": " : "") + document.detail, response.status, document);
  const text = refused(response.status, document.detail);
  if (used === token) report("denied", { text, changes: method !== "GET" });
  return new Problem(text, response.status, document);
}

// A response that is well. Requests of the browser itself (pictures, event streams, links) carry no
// token, so all requests use this function. `options` is that of fetch().
export async function call(path, options = {}) {
  const used = token, headers = used ? { ...options.headers, Authorization: "Bearer " + used } : options.headers;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    kept.clear(); // another daemon may come back
    report("lost");
    throw new Problem("The daemon does not respond.", 0, null);
  }
  report("found");
  if (!response.ok) throw await problem(response, options.method || "GET", used);
  return response;
}

export async function get(path, options) {
  return (await call(path, options)).json();
}

// POST or PUT of a document. `path`, `document`, and "PUT" where it is that.
export async function send(path, document, method = "POST") {
  return get(path, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(document) });
}

// What does not change while the daemon runs: requested once.
const kept = new Map();
export function once(path) {
  if (!kept.has(path)) kept.set(path, get(path).catch((error) => { kept.delete(path); throw error; }));
  return kept.get(path);
}

// Every event of a stream: for await (const {event, data} of stream(path, signal)). EventSource
// would not send a token.
export async function* stream(path, signal) {
  const response = await call(path, { signal });
  if (!response.body) return; // 204: there is nothing to come
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const [, event, data] = /^event: (.*)\n(?:.*\n)*?data: (.*)$/m.exec(part) || [];
      if (data) yield { event, data: JSON.parse(data) }; // else a comment that keeps the connection alive
    }
  }
}

// A link to a document of the daemon. With a token, the browser cannot open it by itself.
export async function follow(event) {
  if (!token) return;
  event.preventDefault();
  const link = event.currentTarget;
  const file = URL.createObjectURL(await (await call(link.getAttribute("href"))).blob());
  Object.assign(document.createElement("a"), { href: file, download: link.dataset.name }).click();
  setTimeout(() => URL.revokeObjectURL(file), 60000);
}
