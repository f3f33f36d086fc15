// Receipts of erasures, which facet console gets from the cluster.

import { texts } from './texts.js'

/**
 * What a receipt says. The cluster has signed it.
 * @typedef {object} Receipt
 * @property {string} signed base64
 * @property {string} public_key
 * @property {{disks_clean: boolean, missing?: string[], replicas?: {name: string, needed_index: number, erased_to_index: number}[]}} receipt
 */

/**
 * Returns a receipt of erased subjects, or an earlier one that the cluster has brought up to date.
 * @param {readonly {galleryId: string, id: string, externalId?: string | undefined, score?: number | undefined}[]} erased
 * @param {Pick<Receipt, 'signed'> | undefined} before
 * @param {boolean} now orders rounds of erasure
 * @param {AbortSignal} signal
 * @returns {Promise<Receipt>}
 */
export async function orderReceipt(erased, before, now, signal) {
  const order = before
    ? { signed: before.signed, now }
    : {
        subjects: erased.map((e) => ({
          gallery: e.galleryId, subject: e.id, gallery_name: '', external_id: e.externalId, score: e.score, answered: new Date().toISOString(), request_id: '',
        })),
      }
  const answer = await fetch('/admin/receipts', {
    method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(order), cache: 'no-store', signal,
  })
  const body = await answer.json()
  if (!answer.ok) throw new Error(body.message ?? texts.erase.noReceipt)
  return body
}
