// Package enginetest provides a running engine and real photographs to tests. It finds
// what `make setup` fetched in the folder assets of the module, and fails a test
// with a clear sentence if it is not there: without models nothing of facet can
// be tested honestly, so nothing is skipped.
//
// It is for tests only and may import engine and its sub-packages.
package enginetest
