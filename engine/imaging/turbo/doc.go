// Package turbo decodes JPEG with libjpeg-turbo, which it loads when the process
// runs: it needs no C compiler, and the program works without the library.
//
// It owns the TurboJPEG interface (https://libjpeg-turbo.org, turbojpeg.h,
// versions 2 and 3): names, constants, handles. It trusts its caller to have
// looked at the header of what it decodes. It imports nothing of facet.
package turbo
