// Package search times the search kernel beside its peers: the same rows, the same
// probes, the same core, in turn, huge pages for both.
package search
