// Package id holds the typed identifiers of facet: which thing a 16-byte id
// names is part of its type, so that an event id can't be passed for a subject's.
//
// Ids are lower-case UUIDs of 36 characters (RFC 9562). Subject, event and batch
// ids are version 8 and carry the number of the shard that owns them. The
// package imports the standard library only.
package id
