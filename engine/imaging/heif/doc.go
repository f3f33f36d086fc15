// Package heif decodes HEIC photos with libheif and libde265, compiled to WebAssembly, in a
// sandbox. Each picture has its own bounded memory. A fault in the C++ code ends one picture, not
// the process.
//
// A picture with parts that could not be decoded is an error (slices.go).
//
// The package owns the sandbox and the reading of a file's head (ISO/IEC 23008-12). The WebAssembly
// module is that of github.com/gen2brain/heic. That library's own decoder bounds neither memory nor
// time, and would use the system's libheif in this process if there is one. The package imports
// nothing of facet.
package heif
