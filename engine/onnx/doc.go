// Package onnx runs neural networks of fixed shapes on ONNX Runtime. It is the only package that
// links the runtime. It knows tensors, not faces, and calls a template an embedding.
//
// Load loads the runtime's shared library once for the process. A Model holds one network's
// weights. A Runner holds the buffers of one run at a time, on the thread of its caller, so as many
// runs happen at once as there are runners. The package imports nothing of facet outside internal,
// starts no goroutine, and recovers panics of the binding.
package onnx
