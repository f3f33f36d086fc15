// Package codes is the form of a file with the kernel's codes of a segment's templates, so that a
// start needs to encode few of them again (kernel.Matrix.AddBlock).
//
//	Write   one piece after the other, each of some rows of one slice, sealed with its gallery's key
//	Heads   what pieces a file has
//	Opener  opens a piece
//
// Codes tell nearly as much of a face as its template. So a piece is sealed as a face is, and the
// file is the companion of its segment (segment.Store.Accompany), which an erasure removes with it.
//
// A segment never changes and its name is its hash. A piece is sealed for one segment, and names the
// sequence, event and revision of each row. So its codes are those of just these faces, whatever
// became of the shard since, and no file is ever out of date. A piece that does not open, or is of
// another coding, is left aside: the templates are encoded again.
//
// format.md draws the bytes. The package may import shard/kernel, shard/seal, shard/segment and
// internal/id.
package codes
