package testkit

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/zstd"
)

const (
	endBytes    = 16 // of a secret
	windowBytes = 48 // of a photo
	unpackedMax = 256 << 20
)

// Needles are what files may not contain in the clear, by what each is.
type Needles map[string][]byte

// AddEnds adds the beginning and the end of a secret, unless it is too short.
func (n Needles) AddEnds(what string, secret []byte) {
	if len(secret) >= endBytes {
		n[what], n["the end of "+what] = secret[:endBytes], secret[len(secret)-endBytes:]
	}
}

// AddPhoto adds parts of a photo and of its form in base64, and its template.
func (n Needles) AddPhoto(name string, photo []byte, template []float32) {
	text := base64.StdEncoding.EncodeToString(photo)
	for quarter := 1; quarter < 4; quarter++ {
		at := quarter * len(photo) / 4
		n[fmt.Sprint("bytes of ", name, " from ", at)] = photo[at : at+windowBytes]
		n[fmt.Sprint("base64 of ", name, " from ", at)] = []byte(text[at : at+windowBytes])
	}
	var raw []byte
	for _, x := range template {
		raw, _ = binary.Append(raw, binary.LittleEndian, x) // a number has a size
	}
	n.AddEnds("the template of "+name, raw)
}

// In returns which needles b contains: as they are, or in compressed data at any place,
// which may contain compressed data in turn.
func (n Needles) In(b []byte) (found []string) {
	for what, needle := range n {
		if bytes.Contains(b, needle) {
			found = append(found, what)
		}
	}
	for magic, open := range map[string]func(io.Reader) (io.Reader, error){
		"\x1f\x8b\x08":     func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"\x28\xb5\x2f\xfd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r, zstd.WithDecoderConcurrency(1)) },
	} {
		for rest := b; ; rest = rest[1:] {
			at := bytes.Index(rest, []byte(magic))
			if at < 0 {
				break
			}
			rest = rest[at:]
			if r, err := open(bytes.NewReader(rest)); err == nil {
				plain, _ := io.ReadAll(io.LimitReader(r, unpackedMax)) // what follows the data is an error
				found = append(found, n.In(plain)...)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Below calls found for each file at or below path that contains needles. It returns how
// many files there are, and their size. It skips a file that is removed in the meantime.
func (n Needles) Below(path string, found func(file string, what []string)) (files, size int, err error) {
	err = filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // see above
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		files, size = files+1, size+len(b)
		if what := n.In(b); len(what) > 0 {
			found(file, what)
		}
		return nil
	})
	return files, size, err
}

// Check returns an error unless In finds each needle in a compressed file of a compressed
// archive.
func (n Needles) Check() error {
	pack, err := zstd.NewWriter(nil)
	if err != nil {
		return err
	}
	var digits []byte // they compress
	for i := range 1000 {
		digits = fmt.Appendf(digits, "%d ", i*i)
	}
	for what, needle := range n {
		leak := pack.EncodeAll(slices.Concat(digits, needle, digits), []byte("head"))
		var archive bytes.Buffer
		z := gzip.NewWriter(&archive)
		_, _ = z.Write(append(leak, "tail"...)) // into memory
		_ = z.Close()
		if bytes.Contains(archive.Bytes(), needle) || !slices.Contains(n.In(archive.Bytes()), what) {
			return fmt.Errorf("%s is not found in an archive", what)
		}
	}
	return nil
}
