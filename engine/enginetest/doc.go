// Package enginetest provides a running engine and real photographs to tests. It looks for them in
// the module's folder assets, which `make setup` fills. Without models no test of facet is honest,
// so a test without them fails and says what to do.
//
// It is for tests only and may import engine and its sub-packages.
package enginetest
