// Package listcheck finds persons who occur twice in a list before the list is enrolled. A
// check keeps the templates of its rows in the memory of one node, compares each new one with
// them, and forgets all when it ends or nobody uses it. Nothing of it is written anywhere.
//
// It may import internal/fair, id, calls, engine/score, shard/kernel and shard/scan.
package listcheck
