// Package nodetest runs whole clusters in one process for tests: real Raft groups,
// gossip, TLS and HTTPS, over the machine's network or over memnet in virtual
// time. Only the faces are not real: HashExtractor takes a template from a hash of
// the image, so that the cluster is what a test spends its time on. It may import
// node and everything below.
package nodetest
