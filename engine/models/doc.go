// Package models owns packs: a pack is a folder with a manifest.json and the
// files that the manifest names, all that the engine must know of its models.
// Open reads one, strictly, and checks every file's size and SHA-256; the
// pack's identity is the SHA-256 of its manifest, so two nodes with the same
// identity hold the same bytes.
//
// The default pack's manifest is default.json in this package, embedded, and
// written beside the fetched files by scripts/setup. Its numbers (thresholds,
// quality, calibration) are edited there by hand; see Default.
//
// It may import internal packages and nothing else of facet. Its sub-package
// convert makes the default embedder out of the published one.
package models
