package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// limits are the limits of an archive, checked while it is read.
type limits struct {
	entries int
	bytes   int64 // unpacked, of a tar.gz; of a zip nothing unwanted is unpacked
}

// bounds are far above the largest archive in use, with 3,000 entries and 60 MB.
var bounds = limits{entries: 20_000, bytes: 1 << 30}

// errArchive is returned for an archive that is not as the lock file describes
// it.
var errArchive = errors.New("archive is not as expected")

// sink receives the content of one wanted member. It reads r to the end.
type sink func(m member, r io.Reader) error

// unpack calls put once for every wanted member of the archive. It only compares
// the names in the archive with the wanted names. It uses them for nothing else,
// so that no name can lead outside the folder.
func (lim limits) unpack(archive *io.SectionReader, k kind, wanted []member, put sink) error {
	missing := make(map[string]member, len(wanted))
	for _, m := range wanted {
		missing[m.Path] = m
	}
	read := lim.untar
	if k == wheel {
		read = lim.unzip
	}
	if err := read(archive, missing, put); err != nil {
		return err
	}
	for _, m := range wanted {
		if _, ok := missing[m.Path]; ok {
			return fmt.Errorf("%w: no file %q", errArchive, m.Path)
		}
	}
	return nil
}

func (lim limits) unzip(archive *io.SectionReader, missing map[string]member, put sink) error {
	z, err := zip.NewReader(archive, archive.Size())
	if err != nil {
		return fmt.Errorf("%w: %w", errArchive, err)
	}
	if len(z.File) > lim.entries {
		return fmt.Errorf("%w: more than %d entries", errArchive, lim.entries)
	}
	for _, f := range z.File {
		m, ok := missing[f.Name]
		if !ok {
			continue
		}
		if !f.Mode().IsRegular() || f.UncompressedSize64 != uint64(m.Size) {
			return fmt.Errorf("%w: %q is not a file of %d bytes", errArchive, m.Path, m.Size)
		}
		r, err := f.Open()
		if err != nil {
			return fmt.Errorf("%w: %q: %w", errArchive, m.Path, err)
		}
		err = put(m, io.LimitReader(r, m.Size+1))
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
		delete(missing, f.Name)
	}
	return nil
}

func (lim limits) untar(archive *io.SectionReader, missing map[string]member, put sink) error {
	gz, err := gzip.NewReader(archive)
	if err != nil {
		return fmt.Errorf("%w: %w", errArchive, err)
	}
	t := tar.NewReader(&bounded{r: gz, left: lim.bytes, limit: lim.bytes})
	for range lim.entries {
		h, err := t.Next()
		if errors.Is(err, io.EOF) || (err == nil && len(missing) == 0) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errArchive, err)
		}
		m, ok := missing[h.Name]
		if !ok {
			continue
		}
		if h.Typeflag != tar.TypeReg || h.Size != m.Size {
			return fmt.Errorf("%w: %q is not a file of %d bytes", errArchive, m.Path, m.Size)
		}
		if err := put(m, t); err != nil {
			return err
		}
		delete(missing, h.Name)
	}
	return fmt.Errorf("%w: more than %d entries", errArchive, lim.entries)
}

// bounded returns an error, not io.EOF, when the caller reads more than left
// bytes.
type bounded struct {
	r           io.Reader
	left, limit int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w: unpacks to more than %d bytes", errArchive, b.limit)
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
