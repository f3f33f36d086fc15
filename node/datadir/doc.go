// Package datadir reads and writes a data directory's own record: its node, the groups of
// which it has a replica, and the level of its files.
//
// node.json and level are written whole or not at all (WriteSynced). The package has no
// goroutine.
package datadir
