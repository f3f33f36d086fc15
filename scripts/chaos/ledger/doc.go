// Package ledger compares the audit log of a tenant with what the tenant's clients saw.
//
// A Ledger numbers each try of a request by the signed header x-purpose, which its record repeats. So a
// record that belongs to no try is found, and so is a try with two records.
//
// The package may import internal/tiles, node/audit/entry and scripts/chaos/traffic.
package ledger
