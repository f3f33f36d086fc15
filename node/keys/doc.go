// Package keys has what a node and others trust each other by: its certificates and the
// keys that all nodes share.
//
// It watches the ends of the certificates: Run checks them each hour and logs each day
// which end soon. It changes the key files and the certificates' folder, when an operator
// orders it: Rotate replaces a shared key on all nodes, Certificates requests and takes
// certificates on one.
package keys
