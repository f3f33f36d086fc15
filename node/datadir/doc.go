// Package datadir is what a node's data directory says of itself: whose it is, of which
// groups it has, or had, a replica, and which level its files have.
//
// node.json and level are written whole or not at all (WriteSynced). Nothing here runs by
// itself.
package datadir
