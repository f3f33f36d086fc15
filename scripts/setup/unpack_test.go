package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// entry is one entry of an archive made for a test.
type entry struct {
	name, body string
	typeflag   byte // of a tar; 0 is a file
	link       string
}

func tarGz(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	w := tar.NewWriter(gz)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.typeflag, Linkname: e.link, Mode: 0o644}
		if e.typeflag == 0 {
			h.Typeflag, h.Size = tar.TypeReg, int64(len(e.body))
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if e.typeflag == 0 {
			if _, err := io.WriteString(w, e.body); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), gz.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.typeflag == tar.TypeSymlink {
			h.SetMode(os.ModeSymlink | 0o777)
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, e.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unpacked runs unpack on an archive with the given bytes and returns what came
// out, by path.
func unpacked(t testing.TB, lim limits, archive []byte, k kind, wanted ...member) (map[string]string, error) {
	t.Helper()
	got := make(map[string]string)
	err := lim.unpack(io.NewSectionReader(bytes.NewReader(archive), 0, int64(len(archive))), k, wanted, func(m member, r io.Reader) error {
		data, err := io.ReadAll(r)
		got[m.Path] = string(data)
		return err
	})
	return got, err
}

func want(name string, size int64) member {
	return member{Path: name, result: result{To: "cache/x", Size: size}}
}

func TestUnpackReturnsWantedFilesOnly(t *testing.T) {
	t.Parallel()
	entries := []entry{{name: "a/one", body: "1"}, {name: "../../evil", body: "evil"}, {name: "/etc/evil", body: "evil"}, {name: "a/two", body: "22"}}
	for k, archive := range map[kind][]byte{wheel: zipped(t, entries...), npm: tarGz(t, entries...), sdist: tarGz(t, entries...)} {
		got, err := unpacked(t, bounds, archive, k, want("a/two", 2), want("a/one", 1))
		if err != nil {
			t.Errorf("%s: %v", k, err)
		}
		if diff := cmp.Diff(map[string]string{"a/one": "1", "a/two": "22"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", k, diff)
		}
	}
}

func TestUnpackRefusesHostileArchives(t *testing.T) {
	t.Parallel()
	tight := limits{entries: 3, bytes: 100_000}
	f := func(text string, lim limits, archive []byte, k kind) {
		t.Helper()
		got, err := unpacked(t, lim, archive, k, want("a", 3))
		if !errors.Is(err, errArchive) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: got %v, error %v; want one that wraps errArchive and says %q", k, got, err, text)
		}
	}
	for k, pack := range map[kind]func(testing.TB, ...entry) []byte{wheel: zipped, npm: tarGz} {
		f(`no file "a"`, bounds, pack(t, entry{name: "b", body: "abc"}), k)
		f("not a file of 3 bytes", bounds, pack(t, entry{name: "a", body: "abcd"}), k)
		f("not a file of 3 bytes", bounds, pack(t, entry{name: "a", typeflag: tar.TypeSymlink, body: "/etc/passwd", link: "/etc/passwd"}), k)
		f("more than 3 entries", tight, pack(t, entry{name: "1"}, entry{name: "2"}, entry{name: "3"}, entry{name: "4"}, entry{name: "a", body: "abc"}), k)
		whole := pack(t, entry{name: "a", body: "abc"})
		f("", bounds, whole[:len(whole)/2], k)
		f("", bounds, []byte("not an archive"), k)
		f("", bounds, nil, k)
	}
	f("more than 100000 bytes", tight, tarGz(t, entry{name: "bomb", body: strings.Repeat("0", 200_000)}, entry{name: "a", body: "abc"}), npm)
	f("not a file", bounds, tarGz(t, entry{name: "a", typeflag: tar.TypeLink, link: "/etc/passwd"}), npm)
	f("not a file", bounds, tarGz(t, entry{name: "a", typeflag: tar.TypeDir}), npm)
	f("not a file", bounds, tarGz(t, entry{name: "a", typeflag: tar.TypeFifo}), npm)
}

// TestUnpackStopsAtZipSize builds a zip whose header says 3
// bytes while a megabyte comes out.
func TestUnpackStopsAtZipSize(t *testing.T) {
	t.Parallel()
	body := strings.Repeat("0", 1<<20)
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.CreateRaw(&zip.FileHeader{
		Name: "a", Method: zip.Store, CRC32: crc32.ChecksumIEEE([]byte(body)),
		CompressedSize64: uint64(len(body)), UncompressedSize64: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(f, body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := unpacked(t, bounds, b.Bytes(), wheel, want("a", 3))
	if err == nil || len(got["a"]) > 4 {
		t.Errorf("%d bytes came out, error %v; want at most 4 and an error", len(got["a"]), err)
	}
}

func FuzzUnpack(f *testing.F) {
	entries := []entry{{name: "a", body: "abc"}, {name: "../b", body: "b"}}
	f.Add(zipped(f, entries...), true)
	f.Add(tarGz(f, entries...), false)
	f.Add([]byte("PK\x05\x06"), true)
	f.Add([]byte{0x1f, 0x8b}, false)
	f.Fuzz(func(t *testing.T, archive []byte, isZip bool) {
		k := npm
		if isZip {
			k = wheel
		}
		got, err := unpacked(t, limits{entries: 100, bytes: 1 << 20}, archive, k, want("a", 3))
		if err == nil && len(got["a"]) != 3 {
			t.Errorf("no error, but %q came out, want 3 bytes", got["a"])
		}
		for name, body := range got {
			if name != "a" || len(body) > 4 {
				t.Errorf("%d bytes of %q came out", len(body), name)
			}
		}
	})
}
