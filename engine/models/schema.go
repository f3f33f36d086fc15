package models

import (
	"bytes"
	_ "embed"
)

//go:embed manifest.schema.json
var manifestSchema []byte

// Schema returns the JSON Schema (draft 2020-12) of manifest.json, a copy of
// manifest.schema.json in this package. Every manifest that Parse takes is valid
// by it; Parse asks for more that a schema can't say: sums, orders, and that
// fields agree with each other.
func Schema() []byte { return bytes.Clone(manifestSchema) }
