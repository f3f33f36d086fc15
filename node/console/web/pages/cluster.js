import { html } from '../html.js'
import { useEffect } from '../vendor/hooks.js'
import { count, when } from '../format.js'
import { Empty, Heading, Notice, Problem, useLoaded } from '../parts.js'
import { texts } from '../texts.js'

const t = texts.cluster

/**
 * A member of the cluster, as facet status -o json prints it.
 * @typedef {object} Node
 * @property {string} id
 * @property {string} name
 * @property {string} state
 * @property {string} url
 * @property {boolean} alive
 * @property {boolean} answers
 * @property {string} [version]
 * @property {{group: number, role: string, lag: number, voters: number, events: number}[]} [groups]
 * @property {{node_ends: string, server_ends: string, authority_ends: string, gossip: {since: string}[], cluster: {since: string}[]}} [credentials]
 */

/**
 * @typedef {object} Status
 * @property {string} cluster
 * @property {number} shards
 * @property {number} replicas
 * @property {string} pack
 * @property {Node[]} nodes
 * @property {{shard: number, what?: string}[]} moves
 * @property {string[]} [warnings]
 */

const PERIOD = 5000 // ms

/** Nodes and shards, what is at risk, and certificates, renewed every five seconds. */
export function Cluster() {
  const { value, busy, error, reload } = useLoaded(status, [])
  useEffect(() => {
    const timer = setInterval(() => document.hidden || reload(), PERIOD)
    return () => clearInterval(timer)
  }, [])
  return html`<${Heading} title=${t.title} intro=${value ? t.intro(value.cluster) : ''} />
    ${error !== undefined && html`<${Problem} error=${error} />`}
    ${busy && !value && html`<p role="status" class="busy">${t.loading}</p>`}
    ${value &&
    html`<${Warnings} warnings=${value.warnings ?? []} />
      <${Shards} status=${value} />
      <${Credentials} nodes=${value.nodes} />`}`
}

/**
 * @param {AbortSignal} signal
 * @returns {Promise<Status>}
 */
async function status(signal) {
  const answer = await fetch('/admin/status', { cache: 'no-store', signal })
  if (!answer.ok) throw new Error(t.noStatus(answer.status))
  return answer.json()
}

/** @param {{warnings: string[]}} props */
function Warnings({ warnings }) {
  if (warnings.length === 0) return html`<${Notice} kind="good"><p>${t.healthy}</p><//>`
  return html`<${Notice} kind="warn">
    <p><strong>${t.warnings}</strong></p>
    <ul>${warnings.map((w) => html`<li>${w}</li>`)}</ul>
  <//>`
}

/** A table of nodes by groups. @param {{status: Status}} props */
function Shards({ status }) {
  const groups = [...new Set(status.nodes.flatMap((n) => (n.groups ?? []).map((g) => g.group)))].sort((a, b) => a - b)
  return html`<section class="card" aria-labelledby="nodes">
    <h2 id="nodes">${t.nodes(status.nodes.length, status.shards, status.replicas)}</h2>
    ${status.moves.length > 0 && html`<p>${t.moves(status.moves.length)}</p>`}
    <div class="scroll" tabindex="0" role="group" aria-labelledby="nodes">
      <table>
        <thead>
          <tr>
            <th scope="col">${t.node}</th><th scope="col">${t.state}</th>
            ${groups.map((g) => html`<th scope="col">${g === 0 ? t.meta : t.shard(g)}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${status.nodes.map(
            (n) => html`<tr>
              <th scope="row">${n.name}<br /><span class="faint small">${n.version ?? ''}</span></th>
              <td>${stateOf(n)}</td>
              ${groups.map((g) => html`<td><${Replica} replica=${n.groups?.find((r) => r.group === g)} /></td>`)}
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${status.nodes.length === 0 && html`<${Empty}><p>${t.noNodes}</p><//>`}
  </section>`
}

/** @param {Node} n */
function stateOf(n) {
  if (!n.alive) return html`<span class="bad">${t.down}</span>`
  if (!n.answers) return html`<span class="bad">${t.silent}</span>`
  return n.state === 'active' ? html`<span class="good">${t.up}</span>` : (t.states[n.state] ?? n.state)
}

/** @param {{replica: {role: string, lag: number, events: number} | undefined}} props */
function Replica({ replica }) {
  if (!replica) return html`<span class="faint">–</span>`
  return html`${t.roles[replica.role] ?? replica.role}${replica.lag > 0 && html`<br /><span class="faint small">${t.lag(count(replica.lag))}</span>`}
    ${replica.events > 0 && html`<br /><span class="faint small">${t.events(count(replica.events))}</span>`}`
}

/** @param {{nodes: Node[]}} props */
function Credentials({ nodes }) {
  const known = nodes.filter((n) => n.credentials)
  if (known.length === 0) return null
  const day = (/** @type {string | undefined} */ at) => (at ? when(new Date(at)) : '')
  return html`<section class="card" aria-labelledby="credentials">
    <h2 id="credentials">${t.credentials}</h2>
    <div class="scroll" tabindex="0" role="group" aria-labelledby="credentials">
      <table>
        <thead><tr><th scope="col">${t.node}</th><th scope="col">${t.nodeEnds}</th><th scope="col">${t.serverEnds}</th><th scope="col">${t.authorityEnds}</th><th scope="col">${t.clusterKey}</th><th scope="col">${t.gossipKey}</th></tr></thead>
        <tbody>
          ${known.map(
            ({ name, credentials: c }) => html`<tr>
              <th scope="row">${name}</th><td>${day(c?.node_ends)}</td><td>${day(c?.server_ends)}</td><td>${day(c?.authority_ends)}</td>
              <td>${day(c?.cluster[0]?.since)}</td><td>${day(c?.gossip[0]?.since)}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
  </section>`
}
