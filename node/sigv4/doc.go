// Package sigv4 signs requests and checks their signatures: Signature Version 4
// with HMAC-SHA256, in the two dialects and with the two date headers that clients
// of the interface use (decisions D1–D4).
//
// It knows no HTTP library: a request is a method, the raw request target, the
// headers in their order and the hash of the body. So the server and the Go client
// share it. "The specification" in its comments is Amazon's page "Create a signed
// AWS API request". It imports the standard library only.
package sigv4
