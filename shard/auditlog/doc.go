// Package auditlog holds the audit logs of one shard: a Merkle log for each tenant whose home the
// shard is.
//
//	entry   the hash of a leaf and its sealed content, which the tenant's audit key opens
//	tile    256 hashes of a level of the tree; a complete tile has one hash in the tile above
//	log     entries in their order, tiles, open intents, and the writers' last batches
//
// The hashes are those of RFC 6962, the tiles those of C2SP's tlog-tiles. A node seals an entry and
// computes its leaf hash, so the state machine sees no content. New entries stay in memory until a
// snapshot has written them to files of shard/segment. Then only the tiles above the leaves stay, an
// eighth of a byte for each entry. After a tenant's retention the contents go from the files and the
// leaf hashes stay.
//
// Each process of a node is a writer, which numbers its entries from 1. An entry that comes again, in
// whatever batch, has no second effect.
//
// The package is part of a state machine: it reads no clock. It may import internal packages and
// shard/segment.
package auditlog
