// Package convert makes the default pack's embedder from the published
// MobileFaceNet (fr_feature.onnx). The new model is faster in ONNX Runtime, has a
// free batch dimension, and has 192 outputs instead of 512.
//
// The last layer's bias and first 191 left singular vectors span a space that
// contains the published outputs up to a residual of less than 1 %. An
// orthonormal basis of that space is folded into the last layer. The templates
// then have 192 numbers, and the same cosines to about 2e-5.
//
// The same input gives the same bytes on every processor. The package uses only +
// − × ÷ and √ of float64, in one fixed order. It rounds every product explicitly,
// so that no compiler fuses it with a sum, which would make amd64 and arm64
// differ.
//
// SFace makes the embedder of the pack "sface" from OpenCV's SFace with weights of
// 8 bits. YuNet converts OpenCV's detector of that name for an input of any size.
//
// It may import internal packages, the standard library, protowire and the JSON library.
package convert
