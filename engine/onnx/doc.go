// Package onnx runs neural networks of fixed shapes on ONNX Runtime. It is the
// only package that links the runtime, and the only one where a template is
// called an embedding: it knows tensors, not faces.
//
// The runtime's shared library is loaded once for the process (Load). A Model
// holds one network's weights once; a Runner holds the buffers of one run at a
// time, so as many runs happen at once as there are runners, each on the thread
// of its caller. The package imports nothing of facet, starts no goroutine, and
// lets no panic of the binding out.
package onnx
