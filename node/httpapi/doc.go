// Package httpapi serves the public HTTPS interface: the biometric operations of
// versions 1 and 1.1 and the tenant management operations, on one port.
//
// Every request takes the same steps. The server checks the frame (HTTP allows some
// things that we refuse), the declared size, the signature, the route, the role,
// the API key and the rates. Then the operation's handler parses the body, makes
// one call of Service and encodes the outcome. The package decides no rule of the
// product and knows no shard.
//
// It may import its own openapi, node/sigv4, router, engine and internal
// packages, and fasthttp.
package httpapi
