package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

const (
	templateBytes = 16 // of a template that are looked for
	windowBytes   = 48 // of a photo
	frameMax      = 1 << 28
)

// needle is a secret or personal datum that no file may hold in the clear.
type needle struct {
	what   string
	text   []byte
	inLogs bool // only logs must not have it
}

// scanning looks for what must not lie on disks and in logs.
type scanning struct{ *attack }

// leftovers scans the disks and logs of all nodes, the removed one included, for what the
// tenants have sent and got. It looks inside compressed frames, too.
func (a scanning) leftovers(c *tally) error {
	needles, err := a.needles()
	if err != nil {
		return err
	}
	if err := a.seesNeedles(needles); err != nil {
		return err
	}
	files, size := 0, 0
	for _, n := range a.info.Nodes {
		for _, at := range []string{n.Dir, n.Log} {
			err := filepath.WalkDir(at, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return nil //nolint:nilerr // the nodes remove files meanwhile
				}
				b, err := os.ReadFile(path)
				if err != nil {
					return nil //nolint:nilerr // the same
				}
				files, size = files+1, size+len(b)
				for _, found := range scan(b, needles, at == n.Log) {
					c.got("%s has %s in the clear", path, found)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	c.tries = files * len(needles)
	c.note("%d files, %.1f MB, %d things to find", files, float64(size)/1e6, len(needles))
	if files < nodes*5 {
		return errors.New("there are hardly any files: nothing was scanned")
	}
	return nil
}

// scan returns what of needles b has in the clear, or in a compressed frame.
func scan(b []byte, needles []needle, log bool) (found []string) {
	look := func(b []byte) {
		for _, n := range needles {
			if (log || !n.inLogs) && !slices.Contains(found, n.what) && bytes.Contains(b, n.text) {
				found = append(found, n.what)
			}
		}
	}
	look(b)
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd}
	for at := bytes.Index(b, frame); at >= 0; at = next(b, string(frame), at) {
		z, err := zstd.NewReader(bytes.NewReader(b[at:]), zstd.WithDecoderConcurrency(1))
		if err != nil {
			continue
		}
		plain, _ := io.ReadAll(io.LimitReader(z, frameMax)) // bytes after the frame are an error
		z.Close()
		look(plain)
	}
	return found
}

// needles returns what the tenants have sent and got: photos, templates, names and keys.
func (a scanning) needles() (list []needle, err error) {
	add := func(what, text string, inLogs bool) { list = append(list, needle{what, []byte(text), inLogs}) }
	engine, err := a.files.Engine(1)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	for name, photo := range a.photos {
		for _, at := range []int{len(photo) / 4, len(photo) / 2, len(photo) * 3 / 4} {
			add(fmt.Sprint("bytes of the photo ", name, " from ", at), string(photo[at:at+windowBytes]), false)
			text := encoded(photo)
			add(fmt.Sprint("base64 of the photo ", name, " from ", at), text[at:at+windowBytes], false)
		}
		faces, err := engine.Extract(context.Background(), photo)
		if err != nil || len(faces) != 1 {
			return nil, fmt.Errorf("extract %s: %d faces, %w", name, len(faces), err)
		}
		var template []byte
		for _, x := range faces[0].Template {
			template = binary.LittleEndian.AppendUint32(template, math.Float32bits(x))
		}
		add("the template of "+name, string(template[:templateBytes]), false)
		add("the end of the template of "+name, string(template[len(template)-templateBytes:]), false)
	}
	for _, t := range []*tenant{a.victim, a.thief} {
		for what, text := range map[string]string{
			"the admin's secret key": t.admin.secretKey, "the biometric secret key": t.biometric.secretKey, "the read-only secret key": t.only.secretKey,
			"an API key": t.gallery.apiKey, "the second API key": t.second.apiKey, "the sibling's API key": t.sibling.apiKey,
		} {
			add(what+" of "+t.name, text, false)
		}
		for what, text := range map[string]string{
			"the tenant's name": t.name, "a gallery's name": t.gallery.name, "a tag": t.tag, "a file's name": "canary-file-" + t.name, "an application's name": strings.Replace(t.name, "tenant", "application", 1),
		} {
			add(what+", "+text, text, true)
		}
	}
	for _, s := range a.victim.subjects {
		add("the subject "+s.ID, s.ID, true)
	}
	return list, nil
}

// seesNeedles plants all needles in a compressed frame: the scan must find each.
func (scanning) seesNeedles(needles []needle) error {
	var all []byte
	for i, n := range needles {
		all = fmt.Appendf(all, "%s %d %d ", n.text, i*7919, i*104729) // digits compress
	}
	frame, err := framed(all)
	if err != nil {
		return err
	}
	if found := scan(frame, needles, true); len(found) < len(needles) {
		return fmt.Errorf("the scan found %d of %d things", len(found), len(needles))
	}
	return nil
}

// framed returns b as a compressed frame among other bytes.
func framed(b []byte) ([]byte, error) {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		return nil, err
	}
	out := append(z.EncodeAll(b, []byte("head")), "tail"...)
	return out, z.Close()
}
