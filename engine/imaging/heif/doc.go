// Package heif decodes HEIC photos with libheif and libde265, compiled to
// WebAssembly, in a sandbox: each picture has its own memory with an upper bound,
// and stops when its context ends. A fault in the C++ code ends one picture, not
// the process.
//
// A picture of which a part could not be decoded is an error (slices.go).
//
// It owns the sandbox and the reading of a file's head (ISO/IEC 23008-12). The
// WebAssembly module is that of github.com/gen2brain/heic, whose own decoder
// bounds neither memory nor time, and would use the system's libheif in this
// process where there is one. It imports nothing of facet.
package heif
