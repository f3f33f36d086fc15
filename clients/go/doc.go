// Package client speaks the interface of facet: it registers faces, searches,
// verifies, manages tags, jobs, galleries and applications, over signed HTTPS, on
// any of a cluster's nodes.
//
//	c, err := client.New(client.Config{
//		BaseURLs:  []string{"https://n1.example.org:7420", "https://n2.example.org:7420"},
//		AccessKey: "…", SecretKey: "…", APIKey: "…", CAFile: "ca.pem",
//	})
//	found, err := c.Search(ctx, client.SearchQuery{Probe: photo})
//
// A request that gets no answer, or one that says "later", is sent again, to the
// next node, with growing pauses. Every write that makes or changes something
// carries an Idempotency-Key, the same one at every try, so that it has one effect
// however often it is sent. What the service refuses is an *Error; errors.Is knows
// its kinds, ErrGalleryFull for example.
//
// That nobody was found is an empty list. That somebody was not verified is an
// error, ErrNotVerified: code that looks at errors only never takes it for a match.
//
// It is a module of its own and imports the standard library only: who uses it
// shall not download a Raft library to sign a request. For the same reason it has
// its own signer, which needs to know one spelling of the signature, where the
// server's package node/sigv4 knows them all; and each of the two is tested by the
// other.
package client
