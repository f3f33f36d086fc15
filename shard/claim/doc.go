// Package claim keeps which subject has an external id, and bars late claims.
//
// The shards of a cluster share the external ids of all galleries: each id has one home shard, which
// follows from its name (shard.ExternalName) and the number of shards, whatever the gallery's size.
// The home's Book has the claim of a subject to the name. The subject's own shard has the id itself,
// in a note. The claim comes before the note and goes after it, so that a name has two subjects
// never, and a claim without a note now and then: the router takes such claims away (router/claims/claims.go).
//
// A Book also has the bars of its own shard's subjects: after a bar, a write whose claim is older
// than the bar gives the subject no external id.
//
// Writes are deterministic and come from one goroutine, the state machine's. Reads may run beside
// them. The package may import internal packages, and shard for the names.
package claim
