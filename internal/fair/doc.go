// Package fair divides a node's resources between its tenants, so that one tenant's
// flood costs the others no more than their share. A Pool divides bytes and places,
// a Queue the turns at the engine's workers, or at reading rows from disk. The package has no goroutine.
//
// It may import internal/id and the standard library.
package fair
