// Package convert makes the default pack's embedder out of the published
// MobileFaceNet (fr_feature.onnx): faster in ONNX Runtime, with a free batch
// dimension, and with 192 outputs instead of 512.
//
// The published outputs lie, up to a residual of less than 1 %, in the space
// that the last layer's bias and first 191 left singular vectors span. An
// orthonormal basis of that space, folded into the last layer, gives templates
// of 192 numbers that have the same cosines to about 2e-5.
//
// The same input gives the same bytes on every processor: only + − × ÷ and √ of
// float64 are used, in one fixed order, and every product is rounded explicitly,
// so that no compiler fuses it with a sum (amd64 and arm64 would differ).
//
// Dlib makes the embedder of the pack "dlib" out of weights published for
// TensorFlow.js.
//
// It may import the standard library, protowire and the JSON library.
package convert
