package e2e

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"facet/engine/imaging"
)

// fragmentBytes is the length of the fragments for which memory is searched.
const fragmentBytes = 64

// fragments are pieces of photos, by their first eight bytes.
type fragments struct {
	byHead map[uint64][]fragment
	// maybe has a bit for the hash of every head, so that most places are passed by
	// quickly.
	maybe []uint64
}

type fragment struct {
	bytes []byte
	what  string
}

const maybeBits = 22

func hashOf(head uint64) uint64 { return head * 0x9e3779b97f4a7c15 >> (64 - maybeBits) }

// add adds the pieces of text that differ enough to be the photo's own.
func (f *fragments) add(what string, text []byte) {
	for ; len(text) >= fragmentBytes; text = text[fragmentBytes:] {
		piece := text[:fragmentBytes]
		seen := map[byte]bool{}
		for _, c := range piece {
			seen[c] = true
		}
		if len(seen) < fragmentBytes/3 { // a plain background, a table
			continue
		}
		head := binary.LittleEndian.Uint64(piece)
		f.byHead[head] = append(f.byHead[head], fragment{piece, what})
		f.maybe[hashOf(head)/64] |= 1 << (hashOf(head) % 64)
	}
}

// fragmentsOf returns the pieces of a photo: of its file, of the file in base64, and
// of its pixels at every scale to which it is decoded.
func fragmentsOf(t *testing.T, name string) *fragments {
	t.Helper()
	f := &fragments{byHead: map[uint64][]fragment{}, maybe: make([]uint64, 1<<maybeBits/64)}
	file := photo(t, name)
	if err := imaging.LoadTurbo(filepath.Join(root, "assets", "lib")); err != nil {
		t.Fatal(err)
	}
	f.add("file", withoutTables(file))
	f.add("base64", []byte(base64.StdEncoding.EncodeToString(file)))
	head, err := imaging.DecodeConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []imaging.Shrink{imaging.Whole, imaging.Half, imaging.Quarter} {
		var im imaging.Image
		if err := head.DecodeInto(t.Context(), &im, file, s); err != nil {
			t.Fatal(err)
		}
		for y := range im.Height {
			f.add(fmt.Sprintf("row at 1/%d", s), im.Pix[3*im.Width*y:][:3*im.Width])
		}
	}
	return f
}

// withoutTables returns a JPEG with zeros for its Huffman tables, which say nothing
// about the picture, and every other file as it is.
func withoutTables(file []byte) []byte {
	file = bytes.Clone(file)
	if !bytes.HasPrefix(file, []byte{0xff, 0xd8}) {
		return file
	}
	for at := 2; at+4 <= len(file) && file[at+1] != 0xda; {
		end := at + 2 + int(binary.BigEndian.Uint16(file[at+2:]))
		if file[at+1] == 0xc4 {
			clear(file[at:end])
		}
		at = end
	}
	return file
}

// in returns the heads and kinds of the pieces that the memory of a process has.
func (f *fragments) in(t *testing.T, pid int) map[uint64]string {
	t.Helper()
	found := map[uint64]string{}
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Skipf("the memory of another process may not be read: %v", err)
	}
	defer memory.Close()
	pages, err := os.Open(fmt.Sprintf("/proc/%d/pagemap", pid))
	if err != nil {
		t.Skipf("the page table of another process may not be read: %v", err)
	}
	defer pages.Close()
	read := 0
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		var from, to int64
		var rights string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &rights); err != nil || !strings.HasPrefix(rights, "rw") {
			continue
		}
		for _, run := range inMemory(pages, from, to) {
			b := make([]byte, run[1]-run[0])
			n, _ := memory.ReadAt(b, run[0]) // a page may have been freed meanwhile
			read += n
			f.search(b[:n], found)
		}
	}
	if read < 10<<20 {
		t.Fatalf("only %d bytes of process %d could be read", read, pid)
	}
	return found
}

// inMemory returns the runs of pages between two addresses that are in memory or
// swapped.
func inMemory(pages *os.File, from, to int64) (runs [][2]int64) {
	size := int64(os.Getpagesize())
	entries := make([]byte, (to-from)/size*8)
	n, _ := pages.ReadAt(entries, from/size*8)
	for i := 0; i+8 <= n; i += 8 {
		if binary.LittleEndian.Uint64(entries[i:])>>62 == 0 {
			continue
		}
		at := from + int64(i)/8*size
		if last := len(runs) - 1; last >= 0 && runs[last][1] == at {
			runs[last][1] += size
		} else {
			runs = append(runs, [2]int64{at, at + size})
		}
	}
	return runs
}

func (f *fragments) search(b []byte, found map[uint64]string) {
	for at := 0; at+fragmentBytes <= len(b); at++ {
		head := binary.LittleEndian.Uint64(b[at:])
		if f.maybe[hashOf(head)/64]&(1<<(hashOf(head)%64)) == 0 {
			continue
		}
		for _, p := range f.byHead[head] {
			if bytes.Equal(b[at:at+fragmentBytes], p.bytes) {
				found[head] = p.what
			}
		}
	}
}

// noCore matches the limits of a process without core dumps.
var noCore = regexp.MustCompile(`(?m)^Max core file size +0 +0 `)

// A node answers requests with photos. Afterwards its memory has no piece of them.
func TestMemoryForgetsPhotos(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root reads the memory of another process")
	}
	c := serve(t, program, 1, 1)
	pid := c.nodes[0].cmd.Process.Pid
	if limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid)); err != nil || !noCore.Match(limits) {
		t.Errorf("core dumps are not switched off: %v\n%s", err, limits)
	}
	k := c.client(t, 10)
	k.post(t, 0, "/v1.1/face/extract", map[string]any{"faces": encoded(t, threePeople)}).want(t, 200, nil)
	for _, name := range []string{biden, collins} {
		pieces := fragmentsOf(t, name)
		if len(pieces.byHead) < 1000 {
			t.Fatalf("%s: only %d pieces", name, len(pieces.byHead))
		}
		for head := range pieces.in(t, pid) { // tables of the decoders, and the like
			delete(pieces.byHead, head)
		}
		k.register(t, 0, name)
		k.post(t, 0, "/v1.1/face/search", map[string]any{"probe": encoded(t, name)}).want(t, 200, nil)
		k.post(t, 0, "/v1.1/face/extract", map[string]any{"faces": encoded(t, name)}).want(t, 200, nil)
		// The engine collects garbage when it has been idle for 2 to 7 s.
		var found map[string]int
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
			time.Sleep(8 * time.Second)
			found = map[string]int{}
			for _, what := range pieces.in(t, pid) {
				found[what]++
			}
			if len(found) == 0 {
				break
			}
		}
		if len(found) > 0 {
			t.Errorf("%s: the node's memory has %v", filepath.Base(name), found)
		}
	}
}
