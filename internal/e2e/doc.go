// Package e2e has the end-to-end tests: the built facet binary, real processes on
// loopback, real models and photos, ordinary clients from outside, and SIGKILL.
//
// They need the files of "make setup", a Go toolchain and curl 7.82 or newer. They
// only kill processes that they have started.
//
// The package has no code of its own; its tests may import everything.
package e2e
