// Package client calls the interface of facet on any node of a cluster, over signed
// HTTPS. It registers faces, searches and verifies them, and manages tags, jobs,
// galleries and applications.
//
//	c, err := client.New(client.Config{
//		BaseURLs:  []string{"https://n1.example.org:7420", "https://n2.example.org:7420"},
//		AccessKey: "…", SecretKey: "…", APIKey: "…", CAFile: "ca.pem",
//	})
//	found, err := c.Search(ctx, client.SearchQuery{Probe: photo})
//
// The client repeats a request that gets no answer, or a temporary refusal, at the
// next node and with growing pauses. Every write that creates or changes something
// has an Idempotency-Key, the same one at every try, so it has one effect however
// often it is sent. A refusal is an *Error. errors.Is recognises its kinds, for
// example ErrGalleryFull.
//
// A search that finds nobody returns an empty list. A verification that fails
// returns the error ErrNotVerified, so code that only checks errors never takes it
// for a match.
//
// The package is a module of its own and imports the standard library only: its
// users should not download a Raft library to sign a request. So it has its own
// signer, which writes one form of the signature. The server's package node/sigv4
// reads all forms. The tests of each check the other.
package client
