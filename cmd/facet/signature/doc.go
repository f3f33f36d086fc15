// Package signature explains why a request's signature is refused: it reads the request as curl or
// a client's log shows it, and prints each step of its verification (sigv4.Explain).
package signature
