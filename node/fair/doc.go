// Package fair shares what a node has between its tenants, so that one tenant's flood
// costs the others no more than their share: bytes and places (Pool), and turns at the
// engine's workers (Queue). It owns no goroutine.
//
// It may import internal/id and the standard library.
package fair
