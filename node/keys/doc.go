// Package keys has a node's certificates and the keys that all nodes share.
//
// Run checks each hour when the certificates end, and logs each day the certificates that
// end soon. The package changes files only by an operator's order: Rotate replaces a shared
// key on all nodes; Certificates returns requests for one node's certificates, and stores
// the signed certificates.
package keys
