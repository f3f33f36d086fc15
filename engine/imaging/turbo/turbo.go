package turbo

import (
	"errors"
	"hash/maphash"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"facet/internal/pinned"
)

// ErrMissing is returned when the library was not found or is not usable.
var ErrMissing = errors.New("no usable libturbojpeg")

// Pixels is the layout of decoded pixels in memory: TurboJPEG's TJPF values.
type Pixels int32

// The layouts.
const (
	// RGB is three bytes a pixel, also for grey images.
	RGB Pixels = 0
	// CMYK is four bytes a pixel, as stored: Adobe's files are inverted. Files of four channels
	// decode to this layout only.
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

// WarningError is a warning of libjpeg: damage that it decoded past.
type WarningError struct{ Text string }

func (e *WarningError) Error() string { return e.Text }

// Target is the size and the layout of the decoded pixels.
type Target struct {
	// Width and Height are the header's divided by 1, 2, 4 or 8, rounded up.
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

// Open loads the first usable library of files. The system's loader searches for a name without a
// slash. The error wraps ErrMissing and says why each file was refused.
func Open(files ...string) (*Library, error) {
	var reasons []error
	for _, name := range files {
		l := &Library{name: name}
		err := l.load(name)
		if err == nil {
			return l, nil
		}
		reasons = append(reasons, err)
	}
	return nil, errors.Join(append([]error{ErrMissing}, reasons...)...)
}

// OpenFile loads the bytes of an open file. The file must stay open until the process ends
// (pinned.LoadName). The error wraps ErrMissing.
func OpenFile(f *os.File) (*Library, error) {
	l := &Library{name: f.Name()}
	if err := l.load(pinned.LoadName(f)); err != nil {
		return nil, errors.Join(ErrMissing, err)
	}
	return l, nil
}

// Name returns the name that the library was loaded by.
func (l *Library) Name() string { return l.name }

// Decode decodes data, a JPEG file, into dst, row after row without padding: Width × Height ×
// Pixels.Bytes() bytes. It uses the nearest chroma sample, as the standard library does. If it
// returns nil, it wrote every one of these bytes; after an error dst is undefined. It stops at the
// first damage in the scans and returns a *WarningError.
func (l *Library) Decode(dst []byte, t Target, data []byte) error {
	n := t.Width * t.Height * t.Pixels.Bytes()
	if t.Width < 1 || t.Height < 1 || len(dst) < n || len(data) == 0 {
		return errors.New("nothing to decode, or no room for it")
	}
	return l.decode(dst, t, data)
}

// DecodeAll is Decode for a file whose only damage follows its last pixel: a warning is no error if
// all pixels were written before it. dst has exactly the needed size. The library does not report
// how many rows it wrote. So DecodeAll decodes twice, over zeros and over ones; a byte that the
// library did not write differs. This takes twice as long.
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

// decode runs the library once, with a new handle. A handle keeps settings of the previous call,
// and version 3 applies them to the next header.
func (l *Library) decode(dst []byte, t Target, data []byte) error {
	h := l.initDecompress()
	if h == 0 {
		return errors.New("libturbojpeg has no memory for a decoder")
	}
	defer l.destroy(h)
	// The library keeps the text of a warning per thread, not per handle.
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
