// Package seal encrypts templates and secrets.
//
// A Key (AES-256-GCM, a random nonce each time) seals the data of one gallery. A Master, made from
// 32 secret bytes outside the data directory, wraps keys and authenticates names. It derives a key
// for each of its purposes (HKDF, RFC 5869). The package imports the standard library only and does
// no I/O.
package seal
