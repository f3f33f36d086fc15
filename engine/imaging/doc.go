// Package imaging turns bytes into upright pixels and cuts pieces out of them.
//
// It owns what an image may be (Formats; limits before any pixel is allocated,
// shrinking while decoding, EXIF orientation applied; docs/formats/images.md) and
// the geometry of the face pipeline: a pyramid of halved images and one sampler
// for crops, letterboxes and aligned faces (Pyramid.Sample), and the least-squares
// similarity of point sets (Fit).
// It knows no faces and imports nothing of facet but its sub-packages: turbo
// (libjpeg-turbo, loaded if it is there) and heif (HEIC in a sandbox). A program
// that imports it starts itself anew to decode a HEIC, see heicchild.go.
//
// Coordinates are continuous: pixel (i, j) covers the square from (i, j) to
// (i+1, j+1), its centre is at (i+½, j+½).
package imaging
