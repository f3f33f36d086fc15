// Package receipt reads and writes receipts of erasures.
//
// A receipt is a signed note (golang.org/x/mod/sumdb/note): JSON, an empty line, and the
// signature of the cluster (Ed25519). Anybody can check it offline with the cluster's public key.
//
// The nodes of the cluster attest what they see themselves: that a subject is gone, at which index
// of its group's log, and what each replica has reported. The times of the erasing answers and
// their request ids are what the operator's command has noted.
package receipt
