// What this browser keeps, in IndexedDB: credentials of a person who wants to stay signed in, and
// which rows an import has brought in. No photo is kept, and no secret that can be read.

const NAME = 'facet-console'
const STORE = 'kept'

/** @returns {Promise<IDBDatabase>} */
function open() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1)
    request.onupgradeneeded = () => request.result.createObjectStore(STORE)
    request.onsuccess = () => resolve(request.result)
    request.onerror = () => reject(request.error)
  })
}

/**
 * Runs one step on the store. Returns undefined where the browser keeps nothing.
 * @template T
 * @param {IDBTransactionMode} mode
 * @param {(store: IDBObjectStore) => IDBRequest<T>} step
 * @returns {Promise<T | undefined>}
 */
async function run(mode, step) {
  let db
  try {
    db = await open()
    const store = db.transaction(STORE, mode).objectStore(STORE)
    return await new Promise((resolve, reject) => {
      const request = step(store)
      request.onsuccess = () => resolve(request.result)
      request.onerror = () => reject(request.error)
    })
  } catch {
    return undefined
  } finally {
    db?.close()
  }
}

/** @param {string} name */
export const kept = (name) => run('readonly', (store) => store.get(name))

/**
 * @param {string} name
 * @param {unknown} value
 */
export const keep = (name, value) => run('readwrite', (store) => store.put(value, name))

/** @param {string} name */
export const forget = (name) => run('readwrite', (store) => store.delete(name))
