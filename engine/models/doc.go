// Package models reads and checks packs. A pack is a folder with a manifest.json and the files that
// the manifest names: all that the engine needs to know about its models. Open reads one, strictly,
// and checks the size and SHA-256 of every file. The pack's identity is the SHA-256 of its
// manifest, so two nodes with the same identity hold the same bytes. Manifest.ModelID identifies
// the model that makes its templates.
//
// List, Read and Verify inspect packs without running them. manifest.schema.json is the schema of
// manifests, docs/formats/pack.md describes them.
//
// This package embeds the manifests of the packs that scripts/setup installs, default.json,
// sface.json and accurate.json, and accurate's projection; the set-up writes them beside the fetched
// files. `facet-lab calibrate` fits their quality, calibration, evidence and projection; default.json was
// released and stays. See Default.
//
// It may import internal packages and nothing else of facet.
package models
