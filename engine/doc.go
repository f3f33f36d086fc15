// Package engine turns an image into faces: decode, detect, align, template,
// quality and pose. It defines what a template and a score are.
//
// Its sub-packages: imaging (decoding and geometry of pixels), models (packs of
// models on disk), onnx (the only package that links ONNX Runtime), score
// (comparison and calibration), enginetest (real photos and a running engine for
// tests). It may import internal packages and nothing else of facet, and of
// itself it runs no goroutine.
package engine
