// Package e2e holds the end-to-end tests: the built facet binary, real processes on
// loopback, real models and photos, ordinary clients from outside, and SIGKILL.
//
// They want what "make setup" fetches, a Go toolchain and curl 7.82 or newer. Only
// processes that the tests started are ever killed.
//
// The package has no code of its own; its tests may import everything.
package e2e
