package console_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"facet/internal/answers"
	"facet/internal/id"
	"facet/internal/must"
	"facet/internal/tiles"
	"facet/node/audit/entry"
)

var rewrite = flag.Bool("rewrite", false, "write the vectors of the browser's tests")

// vectors are logs and records for the browser's tests. Entry n of a log is "entry n".
type vectors struct {
	Key     string       `json:"key"`
	Logs    []logVector  `json:"logs"`
	Changed []byte       `json:"changed"` // checkpoint of 1000 entries, of which 500 is "changed"
	Swapped []byte       `json:"swapped"` // the same, of which 500 and 501 are swapped
	Foreign []byte       `json:"foreign"` // the checkpoint of the log of 1000 entries, signed by another key
	Other   string       `json:"other"`   // that key
	Records []recordPair `json:"records"`
}

type logVector struct {
	Size       int64         `json:"size"`
	Checkpoint []byte        `json:"checkpoint"`
	Inclusion  []proofVector `json:"inclusion"`
	Older      []proofVector `json:"older"` // of the tree of the first At entries
}

type proofVector struct {
	At     int64    `json:"at"`
	Hashes [][]byte `json:"hashes"`
}

type recordPair struct {
	Content []byte              `json:"content"`
	Shown   answers.AuditRecord `json:"shown"`
}

// memory is a log in memory.
type memory struct {
	size   int64
	hashes []tlog.Hash // by tlog.StoredHashIndex
}

func (m *memory) ReadHashes(indexes []int64) (list []tlog.Hash, err error) {
	for _, i := range indexes {
		list = append(list, m.hashes[i])
	}
	return list, nil
}

func (m *memory) add(t *testing.T, text string) {
	t.Helper()
	hashes, err := tlog.StoredHashes(m.size, []byte(text), m)
	must.Do(t, err)
	m.size, m.hashes = m.size+1, append(m.hashes, hashes...)
}

func (m *memory) sign(t *testing.T, origin string, size int64, key ed25519.PrivateKey) []byte {
	t.Helper()
	root, err := tlog.TreeHash(size, m)
	must.Do(t, err)
	signed, err := tiles.Checkpoint{Origin: origin, Tree: tlog.Tree{N: size, Hash: root}}.Sign(key)
	must.Do(t, err)
	return signed
}

func vector[P ~[]tlog.Hash](t *testing.T, at int64, proof P, err error) proofVector {
	t.Helper()
	must.Do(t, err)
	v := proofVector{At: at, Hashes: [][]byte{}}
	for _, h := range proof {
		v.Hashes = append(v.Hashes, h[:])
	}
	return v
}

// changed returns a log of 1000 entries, of which some have another text.
func changed(t *testing.T, texts map[int64]string) *memory {
	t.Helper()
	m := new(memory)
	for m.size < 1000 {
		text, ok := texts[m.size]
		if !ok {
			text = fmt.Sprintf("entry %d", m.size)
		}
		m.add(t, text)
	}
	return m
}

// records returns records with all fields, with few, and with an address of version 6.
func records() (list []recordPair) {
	full := &entry.Record{
		Random: [16]byte{1, 2, 3}, Time: 1795791845678, Kind: entry.Request, Application: id.Application{UUID: id.UUID{1, 0xab}}, Key: "FACETDOOR3EXAMPLE00A", Holder: "Tür 3 \"Süd\"",
		ID: [16]byte{9, 8, 7}, Operation: "POST /v1.1/face/search", Gallery: id.Gallery{UUID: id.UUID{0xff, 2}}, Generation: 3, Searched: []uint64{1, 70000, 2, 1 << 40}, Threshold: 7001, Limit: 5,
		Pack: "sface-1", Probe: entry.Name{0xfb, 0xef, 1}, Quality: 812, Purpose: "case 4711", Status: 200, Reason: "NoMatch", Micros: 14234,
		Subjects: bytes.Repeat([]byte{0xfe}, 32), Doing: id.Operation{4}, Case: id.UUID{5, 15: 6}, Verdict: entry.Different, Count: 70_000,
	}
	full.From(netip.MustParseAddr("10.1.2.3"))
	full.Add(entry.Name{1}, 9731)
	full.Add(entry.Name{0xff, 0xfe}, 255)
	v6 := &entry.Record{Time: time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC).UnixMilli(), Kind: entry.Command, Operation: "tenant set", Threshold: 1}
	v6.From(netip.MustParseAddr("2001:db8:0:0:1::a"))
	for i, r := range []*entry.Record{full, v6, {Time: 1, Kind: entry.Intent}} {
		list = append(list, recordPair{r.Encode(), r.Show(uint64(i))})
	}
	return list
}

// The vectors of the browser's tests are those that the server's code makes.
func TestVectorsAreCurrent(t *testing.T) {
	t.Parallel()
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
	origin := tiles.Origin(id.Cluster{UUID: id.UUID{9}}, id.Tenant{UUID: id.UUID{1}})
	v := vectors{Records: records()}
	for k, text := range map[*ed25519.PrivateKey]*string{&key: &v.Key, &other: &v.Other} {
		var err error
		if *text, err = tiles.Key(origin, k.Public().(ed25519.PublicKey)); err != nil {
			t.Fatal(err)
		}
	}
	m := new(memory)
	for _, size := range []int64{1, 2, 3, 7, 255, 256, 257, 1000, 66_000} {
		for m.size < size {
			m.add(t, fmt.Sprintf("entry %d", m.size))
		}
		l := logVector{Size: size, Checkpoint: m.sign(t, origin, size, key)}
		for _, at := range []int64{0, size / 3, size / 2, size - 1} {
			proof, err := tlog.ProveRecord(size, at, m)
			l.Inclusion = append(l.Inclusion, vector(t, at, proof, err))
		}
		for _, at := range []int64{1, (size + 1) / 2, max(1, size-3), size} {
			proof, err := tlog.ProveTree(size, at, m)
			l.Older = append(l.Older, vector(t, at, proof, err))
		}
		v.Logs = append(v.Logs, l)
	}
	v.Foreign = m.sign(t, origin, 1000, other)
	v.Changed = changed(t, map[int64]string{500: "changed"}).sign(t, origin, 1000, key)
	v.Swapped = changed(t, map[int64]string{500: "entry 501", 501: "entry 500"}).sign(t, origin, 1000, key)
	const name = "test/testdata/audit.json"
	got, err := json.MarshalIndent(v, "", " ")
	must.Do(t, err)
	got = append(got, '\n')
	if *rewrite {
		must.Do(t, os.WriteFile(name, got, 0o600))
	}
	if want, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the code makes, %v: go test ./node/console -run Vectors -rewrite", name, err)
	}
}
