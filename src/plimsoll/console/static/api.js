// Requests to the server of this page, and its stream of changes.

/** An answer that is an error, with its text. */
export class ApiError extends Error {
  /** @param {number} status @param {string} text */
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/**
 * The JSON at a path. Throws `ApiError`.
 * @param {string} path
 * @param {RequestInit} [options]
 * @returns {Promise<any>}
 */
export async function getJson(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new ApiError(0, "The server does not answer.");
  }
  let body = null;
  try {
    body = await answer.json();
  } catch {
    // An answer without JSON is an error below.
  }
  if (!answer.ok || body === null) throw new ApiError(answer.status, body?.error ?? `The server answered ${answer.status}.`);
  return body;
}

/**
 * Exchange the one-time code of the address for a session, and take the code out of the address.
 * @returns {Promise<void>}
 */
export async function openSession() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) return;
  history.replaceState(null, "", location.pathname + "#/");
  await getJson("/api/session", { method: "POST", body: JSON.stringify({ code }) });
}
