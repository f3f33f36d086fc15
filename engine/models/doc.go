// Package models owns packs: a pack is a folder with a manifest.json and the
// files that the manifest names, all that the engine must know of its models.
// Open reads one, strictly, and checks every file's size and SHA-256; the
// pack's identity is the SHA-256 of its manifest, so two nodes with the same
// identity hold the same bytes. Manifest.ModelID names what makes its templates.
//
// List, Read and Verify look at packs without running them; WriteFit puts what was
// measured into a manifest. manifest.schema.json is the manifests' schema, and
// docs/formats/pack.md the page about them.
//
// The manifests of the packs that scripts/setup installs are default.json and
// dlib.json in this package, embedded, and written beside the fetched files. Their
// numbers (thresholds, quality, calibration) are edited there by hand; see Default.
//
// It may import internal packages and nothing else of facet. Its sub-package
// convert makes the embedders out of the published ones.
package models
