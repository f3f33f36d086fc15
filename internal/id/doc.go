// Package id has the typed identifiers of facet. The type of a 16-byte id says what
// it names, so an event id can't be passed for a subject's.
//
// Ids are lower-case UUIDs of 36 characters (RFC 9562). Subject, event and batch
// ids are version 8 and contain the number of the shard that owns them. The package
// imports the standard library only.
package id
