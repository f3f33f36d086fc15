// Package seal keeps secrets and templates unreadable without their key.
//
// A Key (AES-256-GCM, a random nonce each time) seals what belongs to one gallery.
// A Master, made from 32 secret bytes that lie outside the data directory, wraps
// keys and authenticates names; each of its purposes has a key of its own (HKDF,
// RFC 5869). The package imports the standard library only and does no I/O.
package seal
