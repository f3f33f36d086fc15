// Package jobs works on bulk registrations: on every node it takes pieces of jobs
// from the shards' leaders, reads the files from the object store, and registers
// each of them as a request would, with what of the machine live requests leave.
//
// That each file is registered once does not depend on it (router.RegisterTask). It
// may import router and what that may.
package jobs
