const NODES_MAX = 64
const REST_MS = 5000 // how long a node without an answer is left alone

/**
 * Chooses the node for each try: one after the other, except nodes that gave no answer lately. The
 * first one is random, so that many clients do not all start at the same node.
 */
export class Nodes {
  /** @param {readonly string[]} urls each https://host:port */
  constructor(urls) {
    if (urls.length < 1 || urls.length > NODES_MAX) {
      throw new TypeError(`${urls.length} addresses, want 1 to ${NODES_MAX}`)
    }
    this.hosts = urls.map(host)
    this.next = Math.floor(Math.random() * urls.length)
    this.rests = urls.map(() => 0)
  }

  /** Returns the index of the next node. When all are left alone, it is the next one anyway. */
  pick() {
    this.next = (this.next + 1) % this.hosts.length
    for (let i = 0; i < this.hosts.length; i++) {
      const at = (this.next + i) % this.hosts.length
      if (/** @type {number} */ (this.rests[at]) <= performance.now()) return at
    }
    return this.next
  }

  /**
   * Leaves a node alone for REST_MS.
   * @param {number} i
   */
  rest(i) {
    this.rests[i] = performance.now() + REST_MS
  }

  /**
   * Uses a node again that has answered.
   * @param {number} i
   */
  wake(i) {
    this.rests[i] = 0
  }
}

/**
 * Returns the host and port of an address, as requests name them.
 * @param {string} url
 */
function host(url) {
  const u = URL.canParse(url) ? new URL(url) : undefined
  if (u?.protocol !== 'https:' || u.pathname !== '/' || u.search || u.hash || u.username || u.password) {
    throw new TypeError(`${JSON.stringify(url)} is not of the form https://host:port`)
  }
  return u.host
}
