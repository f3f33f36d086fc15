// Package pinned opens files whose SHA-256 is known. It knows the hashes of the libraries
// that set-up installs, so that a program without assets/lock.json beside it knows them
// too. A test compares them with that file.
package pinned
