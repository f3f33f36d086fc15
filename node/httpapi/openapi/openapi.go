package openapi

import _ "embed"

//go:embed openapi.json
var document []byte

// ContentType is the media type of Document.
const ContentType = "application/vnd.oai.openapi+json;version=3.1"

// Document returns the description, a JSON text in UTF-8. It is shared: callers do
// not change it.
func Document() []byte { return document }
