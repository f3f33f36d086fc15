// Package npz writes arrays in the form of NumPy's savez: a zip archive with a file NAME.npy for each
// array (the .npy format 1.0 of NumPy's documentation). NumPy reads it with load.
package npz

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

const (
	magic = "\x93NUMPY\x01\x00"
	// align is what the length of a header is a multiple of.
	align = 64
	// chunkMax is the most numbers that are encoded at once.
	chunkMax = 1 << 16
)

// Writer writes an archive. The first error of a write is that of Close.
type Writer struct {
	zip *zip.Writer
	err error
}

// New returns a writer to w, which it does not close.
func New(w io.Writer) *Writer { return &Writer{zip: zip.NewWriter(w)} }

// Close ends the archive.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	return w.zip.Close()
}

// Number is an element of an array of numbers.
type Number interface {
	bool | uint8 | int32 | float32 | float64
}

// kind returns NumPy's name of the type of zero.
func kind(zero any) string {
	switch zero.(type) {
	case bool:
		return "|b1"
	case uint8:
		return "|u1"
	case int32:
		return "<i4"
	case float32:
		return "<f4"
	}
	return "<f8"
}

// Put writes an array of a shape, row after row.
func Put[T Number](w *Writer, name string, values []T, shape ...int) {
	want := 1
	for _, n := range shape {
		want *= n
	}
	if want != len(values) {
		panic(fmt.Sprintf("bug: array %s has %d numbers, not the %d of its shape", name, len(values), want))
	}
	var zero T
	to := w.open(name, kind(zero), shape)
	for len(values) > 0 && w.err == nil {
		n := min(len(values), chunkMax)
		w.err = binary.Write(to, binary.LittleEndian, values[:n])
		values = values[n:]
	}
}

// PutTexts writes an array of texts, in UTF-8. Each takes the bytes of the longest.
func (w *Writer) PutTexts(name string, texts []string) {
	width := 1
	for _, t := range texts {
		width = max(width, len(t))
	}
	to := w.open(name, fmt.Sprintf("|S%d", width), []int{len(texts)})
	cell := make([]byte, width)
	for _, t := range texts {
		if w.err != nil {
			return
		}
		clear(cell[copy(cell, t):])
		_, w.err = to.Write(cell)
	}
}

// open starts the file of an array.
func (w *Writer) open(name, kind string, shape []int) io.Writer {
	if w.err != nil {
		return io.Discard
	}
	file, err := w.zip.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
	if err != nil {
		w.err = err
		return io.Discard
	}
	sides := make([]string, len(shape))
	for i, n := range shape {
		sides[i] = fmt.Sprint(n)
	}
	text := strings.Join(sides, ", ")
	if len(shape) == 1 {
		text += ","
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", kind, text)
	before := len(magic) + 2
	head += strings.Repeat(" ", align-1-(before+len(head))%align) + "\n"
	_, w.err = file.Write(append(binary.LittleEndian.AppendUint16([]byte(magic), uint16(len(head))), head...))
	return file
}
