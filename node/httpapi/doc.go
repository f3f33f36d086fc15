// Package httpapi serves the public HTTPS interface: the biometric operations of
// versions 1 and 1.1 and the tenant management operations, on one port.
//
// A request goes through one pipeline: frame (what HTTP lets through and we do
// not), declared size, signature, route, role, API key, rates, then the
// operation's handler, which parses the body, makes one call of Service and
// encodes the outcome. No rule of the product is decided here, and no shard is
// known.
//
// It may import its own openapi, node/sigv4, node/fair, router, engine and internal packages,
// and fasthttp.
package httpapi
