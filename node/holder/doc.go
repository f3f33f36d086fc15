// Package holder lets one process at a time act for a member. A data directory that was
// copied would otherwise vote twice.
//
// A process acts from a place: its data directory, at its address. The file place in the
// directory records both, with a token. A directory at its place is locked by one process,
// so a restart there acts at once. A directory elsewhere is a copy, or was moved. Its
// process draws a new token and is a newcomer:
//
//	waiting ──ask──▶ no node has heard the holder for 2 s ──take──▶ acting
//	   └── the holder is heard after the start ──▶ the process ends
//
// Every process sends its claim to all nodes. A node records the token of each member's
// holder in the file holders, and exchanges Raft's messages with that holder only. Each
// takeover has a higher number than the one before. A holder that hears of a higher number
// ends.
//
// A newcomer acts in a group when a majority of the group's voters, itself not counted, has
// recorded its token. The old holder then can't reach a majority there, even if the network
// is split, so the group never has two leaders. A newcomer can't count itself: with three
// voters, each of two copies would find a majority with one other node. See
// docs/decisions/0022-one-holder-of-an-identity.md.
//
// The package may import node/datadir, node/loop, node/peer, node/transport, internal/id and
// the standard library.
package holder
