// Package keys has a node's certificates and the keys that all nodes share.
//
// Run checks each hour when the certificates end and logs each day which end soon. The
// package changes the key files and the certificates' folder only by an operator's order:
// Rotate replaces a shared key on all nodes, Certificates requests and takes the
// certificates of one node.
package keys
