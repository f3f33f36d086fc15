// Package stale makes memory that is used again look as if another person's
// request had just left it.
//
// With the build tag stale, which "make test", "make fuzz" and the binary of the
// end-to-end tests have, Picture and Fill overwrite a buffer with a known face
// before it is handed out. A request that reads a byte which it did not write then
// answers with that face, and a test fails. Without the tag both do nothing and
// cost nothing.
//
// A package that keeps memory for its next request calls this package; internal/lint
// checks that for every sync.Pool. buffers.md lists these packages' buffers, and
// docs/decisions/0014-memory-that-is-used-again.md says why.
package stale
