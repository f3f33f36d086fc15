package models

import (
	"bytes"
	_ "embed"
)

//go:embed manifest.schema.json
var manifestSchema []byte

// Schema returns the JSON Schema (draft 2020-12) of manifest.json, a copy of manifest.schema.json.
// Every manifest that Parse accepts is valid by it. Parse also checks rules that a schema can't
// express: sums, orders, and relations between fields.
func Schema() []byte { return bytes.Clone(manifestSchema) }
