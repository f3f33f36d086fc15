// Package bench measures whole requests beside what they can't do without: each
// benchmark prints a ratio to that in the same run, because machines differ. It
// has no code outside its tests.
package bench
