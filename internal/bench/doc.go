// Package bench measures whole requests and, in the same run, the work that they
// can't do without. Each benchmark prints the ratio of the two, because machines
// differ. It has no code outside its tests.
package bench
