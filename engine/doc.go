// Package engine turns an image into faces: it decodes the image, detects and aligns faces, and
// computes template, quality and pose. It defines templates and scores.
//
// Its sub-packages: imaging (decoding and geometry of pixels), models (packs of models on disk),
// onnx (the only package that links ONNX Runtime), score (comparison and calibration), enginetest
// (real photos and a running engine for tests). It may import internal packages and nothing else of
// facet. It starts no goroutine.
package engine
