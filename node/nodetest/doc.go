// Package nodetest runs whole clusters in one process for tests: real Raft groups,
// gossip, TLS and HTTPS, over the machine's network or over memnet in virtual time.
// Only the faces are not real. HashExtractor derives a template from a hash of the
// image, so a test spends its time on the cluster and not on models. The package
// may import node and everything below.
package nodetest
