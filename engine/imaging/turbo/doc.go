// Package turbo decodes JPEG with libjpeg-turbo, which it loads at run time: building needs no C
// compiler, and the program works without the library.
//
// It owns the TurboJPEG interface (https://libjpeg-turbo.org, turbojpeg.h, versions 2 and 3):
// names, constants, handles. Its caller must have checked the header of an image. It imports
// nothing of facet.
package turbo
