package turbo

import (
	"errors"
	"strings"
	"unsafe"
)

// handlesMax bounds the decoders that are kept for the next image; each holds
// about 100 KB. More may work at once.
const handlesMax = 64

// ErrMissing says that the library was not found or is not usable.
var ErrMissing = errors.New("no usable libturbojpeg")

// Pixels is how decoded pixels lie in memory: TurboJPEG's TJPF values.
type Pixels int32

// The layouts.
const (
	// RGB is three bytes a pixel; of grey images, too.
	RGB Pixels = 0
	// CMYK is four bytes a pixel, as stored: Adobe's files are inverted. Files of
	// four channels can be decoded in this layout only.
	CMYK Pixels = 11
)

// Bytes returns the bytes of a pixel.
func (p Pixels) Bytes() int {
	if p == CMYK {
		return 4
	}
	return 3
}

// Values of turbojpeg.h.
const (
	flagFastUpsample  = 256  // TJFLAG_FASTUPSAMPLE
	flagFastDCT       = 2048 // TJFLAG_FASTDCT
	flagStopOnWarning = 8192 // TJFLAG_STOPONWARNING
	warning           = 0    // TJERR_WARNING, of tjGetErrorCode
)

// WarningError is what libjpeg says of data that it decodes nevertheless, and
// that it stops at unless asked not to.
type WarningError struct{ Text string }

func (e *WarningError) Error() string { return e.Text }

// Target says what is made of an image.
type Target struct {
	// Width and Height are those of the header divided by 1, 2, 4 or 8, rounded up.
	Width, Height int
	Pixels        Pixels
	Warnings      Warnings
}

// Warnings says what happens at damage that libjpeg can live with.
type Warnings int

// The ways to treat warnings.
const (
	// Stop ends the decoding at the first one with a WarningError.
	Stop Warnings = iota
	// Ignore decodes on.
	Ignore
)

// Library is a loaded libturbojpeg. It is safe for concurrent use, and is never
// unloaded.
type Library struct {
	name string

	initDecompress func() uintptr
	decompress     func(handle uintptr, data *byte, n uintptr, dst *byte, width, pitch, height, pixels, flags int32) int32
	destroy        func(handle uintptr) int32
	errorText      func(handle uintptr) string
	errorCode      func(handle uintptr) int32

	idle chan uintptr // handles without work
}

// Open loads the first of the files that can be loaded and has the functions that
// are needed. A name without a slash is looked for where the system's loader
// looks. The error wraps ErrMissing and says why each one was refused.
func Open(files ...string) (*Library, error) {
	var reasons []error
	for _, name := range files {
		l := &Library{name: name, idle: make(chan uintptr, handlesMax)}
		err := l.load()
		if err == nil {
			return l, nil
		}
		reasons = append(reasons, err)
	}
	return nil, errors.Join(append([]error{ErrMissing}, reasons...)...)
}

// Name returns the name that the library was found by.
func (l *Library) Name() string { return l.name }

// Decode decodes data, a JPEG file, into dst, row after row without padding:
// Width × Height × Pixels.Bytes() bytes. Of chroma it takes the nearest sample,
// as the standard library does. The error is a *WarningError, or says what is
// wrong; dst is undefined then.
func (l *Library) Decode(dst []byte, t Target, data []byte) error {
	n := t.Width * t.Height * t.Pixels.Bytes()
	if t.Width < 1 || t.Height < 1 || len(dst) < n || len(data) == 0 {
		return errors.New("nothing to decode, or no room for it")
	}
	h, err := l.take()
	if err != nil {
		return err
	}
	defer l.give(h)
	flags := int32(flagFastUpsample)
	if t.Warnings == Stop {
		flags |= flagStopOnWarning
	}
	failed := l.decompress(h, unsafe.SliceData(data), uintptr(len(data)), unsafe.SliceData(dst),
		int32(t.Width), int32(t.Width*t.Pixels.Bytes()), int32(t.Height), int32(t.Pixels), flags)
	if failed == 0 {
		return nil
	}
	text := strings.ToValidUTF8(l.errorText(h), "?")
	switch {
	case l.errorCode(h) != warning:
		return errors.New(text)
	case t.Warnings == Stop:
		return &WarningError{Text: text}
	}
	return nil
}

func (l *Library) take() (uintptr, error) {
	select {
	case h := <-l.idle:
		return h, nil
	default:
	}
	h := l.initDecompress()
	if h == 0 {
		return 0, errors.New("libturbojpeg has no memory for a decoder")
	}
	return h, nil
}

func (l *Library) give(h uintptr) {
	select {
	case l.idle <- h:
	default:
		l.destroy(h)
	}
}
