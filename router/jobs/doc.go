// Package jobs works on bulk registrations. On every node it borrows pieces of jobs
// from the shards' leaders, reads the files from the object store, and registers
// each file as a request would. Live requests come first.
//
// router.RegisterTask makes sure that each file is registered once. The package may
// import router and everything that router may import.
package jobs
