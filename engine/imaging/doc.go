// Package imaging turns bytes into upright pixels and cuts pieces out of them.
//
// It owns what an image may be (Decode: JPEG and PNG, limits before any pixel is
// allocated, EXIF orientation applied) and the geometry of the face pipeline: a
// pyramid of halved images and one sampler for crops, letterboxes and aligned
// faces (Pyramid.Sample), and the least-squares similarity of point sets (Fit).
// It knows no faces and imports nothing of facet.
//
// Coordinates are continuous: pixel (i, j) covers the square from (i, j) to
// (i+1, j+1), its centre is at (i+½, j+½).
package imaging
