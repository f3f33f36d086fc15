// Package lint holds the tests that keep the tree in shape: the order of
// imports, what the state machines may not touch, lengths, package comments, and
// that nothing names a machine. It has no code of its own outside its tests and
// imports the standard library only.
package lint
