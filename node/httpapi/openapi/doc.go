// Package openapi owns the description of the interface in OpenAPI 3.1: all
// operations of version 1.1, version 1 and tenant management, with their bodies,
// statuses, limits and examples, for people and for tools that make clients.
//
// openapi.json is written by hand. Its tests hold it to what the server does: the
// recorded transcripts of node/httpapi and its routing table. It imports the
// standard library only.
package openapi
