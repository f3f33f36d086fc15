// Client of the face matching service facet, for browsers and programs: register faces, search,
// verify. node.js beside this file reads profiles and takes certificate authorities of files.

export { Client } from './client.js'
export * from './errors.js'
export { external } from './operations/subjects.js'
export { recordAttributes } from './operations/gallery.js'
export { Credentials } from './sign.js'
export { FetchTransport } from './transport.js'
