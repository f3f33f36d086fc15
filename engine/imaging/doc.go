// Package imaging decodes images into upright pixels and samples pieces of them.
//
// It owns what an image may be: the formats (Formats), limits checked before any pixel is
// allocated, shrinking while decoding, EXIF orientation (docs/formats/images.md). It also owns the
// geometry of the face pipeline: a pyramid of halved images with one sampler for crops, letterboxes
// and aligned faces (Pyramid.Sample), and the least-squares similarity of point sets (Fit).
//
// It knows no faces and imports nothing of facet but internal packages and its sub-packages: turbo
// (libjpeg-turbo, if it is installed) and heif (HEIC in a sandbox). A program that imports it
// starts a copy of itself to decode a HEIC; see heicchild.go.
//
// Coordinates are continuous: pixel (i, j) covers the square from (i, j) to (i+1, j+1), its centre
// is at (i+½, j+½).
package imaging
