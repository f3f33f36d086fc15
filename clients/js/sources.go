// Package js has the JavaScript client's modules, which the console's pages use as they are.
package js

import "embed"

// Sources are the modules, in the folder src.
//
//go:embed src/*.js src/operations
var Sources embed.FS
