/**
 * Session says how the page is served and what the server does for it.
 * @typedef {object} Session
 * @property {"node" | "loopback"} how
 * @property {string} version
 * @property {string} [region] of request signatures
 * @property {string} [accessKey] the key that facet console signs with
 * @property {string[]} [nodes]
 * @property {string} [apiKey] the application key that facet console was given
 * @property {("tenant" | "operator")[]} rights
 */

/** SignedOut is thrown where facet console knows no session of this browser. */
export class SignedOut extends Error {}

/** Has facet console end this session, and print the address of the next one. */
export async function endSession() {
  await fetch(new URL("session", import.meta.url), { method: "DELETE" }).catch(() => {}); // the page goes in any case
  location.reload();
}

/**
 * readSession asks the server that the page came from.
 * @returns {Promise<Session>}
 */
export async function readSession() {
  const answer = await fetch(new URL("session", import.meta.url), { cache: "no-store" });
  if (answer.status === 401) throw new SignedOut();
  if (!answer.ok) throw new Error(`the session's answer is ${answer.status}`);
  return answer.json();
}
