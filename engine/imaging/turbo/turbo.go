package turbo

import (
	"errors"
	"hash/maphash"
	"runtime"
	"strings"
	"unsafe"
)

// ErrMissing is returned when the library was not found or is not usable.
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
	flagStopOnWarning = 8192 // TJFLAG_STOPONWARNING
	warning           = 0    // TJERR_WARNING, of tjGetErrorCode
)

// WarningError is a warning of libjpeg: damage that it could decode past.
type WarningError struct{ Text string }

func (e *WarningError) Error() string { return e.Text }

// Target is the size and the layout of the decoded pixels.
type Target struct {
	// Width and Height are those of the header divided by 1, 2, 4 or 8, rounded up.
	Width, Height int
	Pixels        Pixels
}

// Library is a loaded libturbojpeg. It is safe for concurrent use, and is never
// unloaded.
type Library struct {
	name string

	initDecompress func() uintptr
	decompress     func(handle uintptr, data *byte, n uintptr, dst *byte, width, pitch, height, pixels, flags int32) int32
	destroy        func(handle uintptr) int32
	errorText      func(handle uintptr) string
	errorCode      func(handle uintptr) int32
}

// Open loads the first of the files that can be loaded and has the functions that
// are needed. A name without a slash is looked for where the system's loader
// looks. The error wraps ErrMissing and says why each one was refused.
func Open(files ...string) (*Library, error) {
	var reasons []error
	for _, name := range files {
		l := &Library{name: name}
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
// as the standard library does. When it returns nil, this call wrote every one
// of these bytes; when it returns an error, dst is undefined. A *WarningError is
// returned for the first damage in the scans, where decoding stops.
func (l *Library) Decode(dst []byte, t Target, data []byte) error {
	n := t.Width * t.Height * t.Pixels.Bytes()
	if t.Width < 1 || t.Height < 1 || len(dst) < n || len(data) == 0 {
		return errors.New("nothing to decode, or no room for it")
	}
	return l.decode(dst, t, data)
}

// DecodeAll is Decode for a file whose only damage follows its last pixel: a
// warning is no error if all pixels had been written before it. dst has just the
// room for them. The library does not tell how many rows it wrote, so they are
// decoded twice, over zeros and over ones: a byte that the library left alone
// differs. It takes twice as long.
func (l *Library) DecodeAll(dst []byte, t Target, data []byte) error {
	seed := maphash.MakeSeed()
	var sums [2]uint64
	for i, fill := range []byte{0, 0xff} {
		for j := range dst {
			dst[j] = fill
		}
		err := l.Decode(dst, t, data)
		if warned := new(WarningError); err == nil || !errors.As(err, &warned) {
			return err
		}
		sums[i] = maphash.Bytes(seed, dst)
	}
	if sums[0] != sums[1] {
		return errors.New("it is damaged before its last pixel")
	}
	return nil
}

// decode runs the library once. Each call has a handle of its own: a handle keeps
// settings of the call before, and with them version 3 reads the next header.
func (l *Library) decode(dst []byte, t Target, data []byte) error {
	h := l.initDecompress()
	if h == 0 {
		return errors.New("libturbojpeg has no memory for a decoder")
	}
	defer l.destroy(h)
	// The library keeps the text of a warning for the thread, not for the handle.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	failed := l.decompress(h, unsafe.SliceData(data), uintptr(len(data)), unsafe.SliceData(dst),
		int32(t.Width), int32(t.Width*t.Pixels.Bytes()), int32(t.Height), int32(t.Pixels), flagFastUpsample|flagStopOnWarning)
	if failed == 0 {
		return nil
	}
	text := strings.ToValidUTF8(l.errorText(h), "?")
	if l.errorCode(h) == warning {
		return &WarningError{Text: text}
	}
	return errors.New(text)
}
