// Command pictures draws the pictures of docs/faces.md: what the engine finds on
// the sample photos, and what it says of each face. It needs what `make setup`
// fetches, and may import engine and its sub-packages.
//
//	go run ./scripts/pictures [-assets assets] [-out docs/pictures]
package main
