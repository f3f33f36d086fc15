//go:build long

package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"facet/engine/imaging"
	"facet/internal/memscan"
	"facet/internal/must"
)

// addPhoto adds the pieces of a photo: of its file, of the file in base64, and of its pixels at
// every scale to which it is decoded, as facet and as the standard library stores them. It
// leaves out what Go's decoder of PNG leaves as garbage (docs/decisions/0029): two rows, and up to
// 36 KiB of the file and of what it unpacked.
func addPhoto(t *testing.T, p *memscan.Pieces, name string) {
	t.Helper()
	file, before := photo(t, name), p.Len()
	add := func(kind string, text []byte) { p.Add(filepath.Base(name)+": "+kind, text) }
	kept := 0 // rows
	if bytes.HasPrefix(file, []byte("\x89PNG")) {
		kept = 2
	} else {
		add("file", withoutTables(file))
	}
	add("base64", []byte(base64.StdEncoding.EncodeToString(file)))
	head, err := imaging.DecodeConfig(file)
	must.Do(t, err)
	for _, s := range []imaging.Shrink{imaging.Whole, imaging.Half, imaging.Quarter} {
		var im imaging.Image
		must.Do(t, head.DecodeInto(t.Context(), &im, file, s))
		for y := range im.Height - kept {
			row := im.Pix[3*im.Width*y:][:3*im.Width]
			add(fmt.Sprintf("pixels at 1/%d", s), row)
			opaque := make([]byte, 0, 4*im.Width)
			for ; len(row) >= 3; row = row[3:] {
				opaque = append(opaque, row[0], row[1], row[2], 0xff)
			}
			add(fmt.Sprintf("RGBA at 1/%d", s), opaque)
		}
	}
	if p.Len() < before+1000 {
		t.Fatalf("%s: only %d pieces", name, p.Len()-before)
	}
}

// withoutTables returns a JPEG with zeros for its Huffman tables and its colour profile, which
// are those of other photos, too, and every other file as it is.
func withoutTables(file []byte) []byte {
	file = bytes.Clone(file)
	if !bytes.HasPrefix(file, []byte{0xff, 0xd8}) {
		return file
	}
	for at := 2; at+4 <= len(file) && file[at+1] != 0xda; {
		end := at + 2 + int(binary.BigEndian.Uint16(file[at+2:]))
		if file[at+1] == 0xc4 || file[at+1] == 0xe2 {
			clear(file[at:end])
		}
		at = end
	}
	return file
}

// inNodes returns the runs of the photos that the memory of any node has.
func inNodes(t *testing.T, c *served, p *memscan.Pieces) memscan.Found {
	t.Helper()
	all := memscan.Found{}
	for _, n := range c.nodes {
		found, read, err := p.In(n.Process().PID())
		if err != nil {
			t.Skipf("the memory of another process can't be read: %v", err)
		}
		if read < 10<<20 {
			t.Fatalf("only %d bytes of node %s could be read", read, n.Name)
		}
		maps.Copy(all, found)
	}
	return all
}

// sendPhoto sends each request with a photo to every node: with its length and in chunks.
func sendPhoto(t *testing.T, k *client, name string) {
	t.Helper()
	for node := range k.info.BaseURLs {
		for _, chunked := range []bool{false, true} {
			for _, r := range []struct{ target, member string }{
				{"/v1.1/face/extract", "faces"}, {"/v1.1/subjects", "face"}, {"/v1.1/face/search", "probe"},
			} {
				q, err := k.sign(http.MethodPost, r.target, "", map[string]any{r.member: encoded(t, name)})
				must.Do(t, err)
				var body io.Reader = bytes.NewReader(q.Body)
				if chunked {
					body = struct{ io.Reader }{body} // its length is not known
				}
				a, err := k.SendBody(t.Context(), k.info.BaseURLs[node], host, q, body)
				if err != nil || a.Status != 200 && a.Status != 201 {
					t.Fatalf("%s: %v, %d %.300s", r.target, err, a.Status, a.Body)
				}
			}
		}
	}
}

// forgetTime is when nothing of a photo is left: the engine collects garbage 2 to 7 s after the last one.
const forgetTime = 10 * time.Second

// noCore matches the limits of a process without core dumps.
var noCore = regexp.MustCompile(`(?m)^Max core file size +0 +0 `)

// Nodes answer requests with photos, and the connections stay open. Some seconds later the
// nodes' memory has no run of the photos, except where a signal interrupted a copy
// (docs/decisions/0029).
func TestMemoryForgetsPhotos(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root reads the memory of another process")
	}
	must.Do(t, imaging.LoadTurbo(filepath.Join(root, "assets", "lib"), imaging.Installed))
	c := serve(t, program(), 2, 1)
	k := c.client(t, 100)
	sendPhoto(t, k, obama) // loads what is loaded once
	photos := []string{biden, collins}
	pieces := memscan.New()
	for _, name := range photos {
		addPhoto(t, pieces, name)
	}
	pieces.Drop(inNodes(t, c, pieces)) // tables of decoders, and the like
	for _, name := range photos {
		sendPhoto(t, k, name)
	}
	time.Sleep(forgetTime)
	registers, found := inNodes(t, c, pieces).Registers()
	if len(registers) > 0 {
		t.Logf("signal frames have %v", registers)
	}
	if len(found) > 0 {
		t.Errorf("the nodes' memory has %d runs, in bytes: %v", len(found), found)
	}
	for _, n := range c.nodes {
		limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", n.Process().PID()))
		if err != nil || !noCore.Match(limits) {
			t.Errorf("node %s may dump core: %v\n%s", n.Name, err, limits)
		}
	}
}
