package memory

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"facet/engine/models"
	"facet/internal/testkit"
	"facet/scripts/bench/cluster"
	"facet/scripts/bench/https"
)

const (
	eventsLeast, eventsMost = 200_000, 30_000_000
	searches                = 50
	settleInterval          = 2 * time.Second
	// settleTries is how many intervals the memory may take to become steady.
	settleTries = 60
	// steady is the largest change of the memory in an interval that is no change.
	steady = .002
	// colder is the part of the templates that are on disk at least when the exact numbers have left.
	colder = .9
	// peerRows is the most rows of an index of FAISS; each takes as much as the others.
	peerRows = 1_000_000
)

// bench is one run.
type bench struct {
	events, memory int
	packs, dir     string
	files          cluster.Files
	photo          []byte
	out            io.Writer
}

// Flags adds the flags of this benchmark and returns the function that runs it.
func Flags(flags *flag.FlagSet) func(context.Context, cluster.Files, io.Writer) error {
	var b bench
	flags.IntVar(&b.events, "events", 1_000_000, "templates")
	flags.IntVar(&b.memory, "memory", 1, "MiB of the setting memory with which the exact numbers leave")
	flags.StringVar(&b.packs, "packs", "default,sface", "model packs, whose templates have 192 and 128 numbers")
	flags.StringVar(&b.dir, "dir", "", "folder for the clusters, which stay and are used again; none: a temporary one")
	return b.run
}

func (b *bench) run(ctx context.Context, files cluster.Files, out io.Writer) (err error) {
	if b.events < eventsLeast || b.events > eventsMost || b.memory < 1 {
		return fmt.Errorf("%d to %d templates, 1 MiB or more", eventsLeast, eventsMost)
	}
	b.files, b.out = files, out
	if b.dir == "" {
		if b.dir, err = os.MkdirTemp("", "bench-memory"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	}
	if b.photo, err = files.Portrait(); err != nil {
		return err
	}
	for name := range strings.SplitSeq(b.packs, ",") {
		b.files.Model = name
		if err := b.pack(ctx); err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
	}
	return nil
}

// pack measures with the templates of one pack.
func (b *bench) pack(ctx context.Context) error {
	pack, err := models.Read(b.files.Pack())
	if err != nil {
		return err
	}
	empty, err := b.empty(ctx)
	if err != nil {
		return err
	}
	shape := cluster.Shape{Dir: filepath.Join(b.dir, b.files.Model), Nodes: 1}
	if err := os.MkdirAll(shape.Dir, 0o700); err != nil {
		return err
	}
	begin := time.Now()
	g, err := b.files.Prepare(ctx, shape, b.events, b.photo, pack.Manifest.Spectrum())
	if err != nil {
		return err
	}
	dim := g.Filled.Dim
	fmt.Fprintf(b.out, "\n%d templates of %d numbers through their groups' logs: %.0f s\n", b.events, dim, time.Since(begin).Seconds())
	all, err := b.full(ctx, shape, &g, 0)
	if err != nil {
		return err
	}
	shape.Memory = b.memory
	some, err := b.full(ctx, shape, &g, colder)
	if err != nil {
		return err
	}
	peers, err := rowsOfPeers(ctx, b.events, dim)
	if err != nil {
		return err
	}
	return b.print(dim, empty, all, some, peers)
}

// state is a reading of a node's memory, and the mean time of a search in one of its shards.
type state struct {
	resident                              float64 // bytes
	planes, codes, exact, records, goHeap float64 // bytes
	estimate                              float64 // bytes
	cold                                  float64 // templates
	search                                float64 // ms
}

// empty measures a node with one event that has searched.
func (b *bench) empty(ctx context.Context) (s state, err error) {
	c, err := b.files.Start(ctx, cluster.Shape{Nodes: 1})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	client, err := https.New(c.Info())
	if err == nil {
		err = client.Found("empty", eventsLeast)
	}
	if err == nil {
		_, err = client.Post(client.URL, "/v1.1/subjects", map[string]any{"face": base64.StdEncoding.EncodeToString(b.photo)})
	}
	if err != nil {
		return s, err
	}
	return b.settle(ctx, c, client, 0)
}

// full measures the filled node. At least a part of its templates must be on disk.
func (b *bench) full(ctx context.Context, shape cluster.Shape, g *cluster.Gallery, cold float64) (s state, err error) {
	c, err := b.files.Start(ctx, shape)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	client, err := https.New(c.Info())
	if err != nil {
		return s, err
	}
	client.APIKey = g.APIKey
	if s, err = b.settle(ctx, c, client, cold*float64(b.events)); err != nil {
		return s, err
	}
	search, err := https.NewSearch(b.photo)
	if err != nil {
		return s, err
	}
	text, err := client.Send(client.URL, search)
	if err == nil {
		err = g.Check(text)
	}
	return s, err
}

// settle searches until the memory is steady and at least cold templates are on disk.
func (b *bench) settle(ctx context.Context, c *cluster.Cluster, client *https.Client, cold float64) (s state, err error) {
	search, err := https.NewSearch(b.photo)
	if err != nil {
		return s, err
	}
	before := 0.
	for range settleTries {
		first, err := cluster.Scrape(ctx, c.Info())
		if err != nil {
			return s, err
		}
		for range searches {
			if _, err := client.Send(client.URL, search); err != nil {
				return s, err
			}
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(settleInterval):
		}
		f, err := cluster.Scrape(ctx, c.Info())
		if err != nil {
			return s, err
		}
		s = stateOf(f)
		s.search, _ = f.Mean(first, "facet_shard_search_duration_seconds", "")
		change := s.resident - before
		if s.cold >= cold && change < steady*before && -change < steady*before {
			return s, nil
		}
		before = s.resident
	}
	return s, fmt.Errorf("the memory is not steady after %s: %.0f templates are on disk, %.0f MB resident", settleTries*settleInterval, s.cold, s.resident/1e6)
}

func stateOf(f testkit.Figures) state {
	arena := func(kind string) float64 { return f[`facet_memory_arena_bytes{kind="`+kind+`"}`] }
	return state{
		resident: f["process_resident_memory_bytes"],
		planes:   arena("planes"), codes: arena("codes"), exact: arena("exact"), records: arena("records"),
		goHeap: f["go_gc_heap_live_bytes"],
		cold:   f["facet_memory_templates_on_disk"], estimate: f["facet_memory_events_bytes"],
	}
}

// rowsOfPeers returns the bytes of a row in each index of peers.py.
func rowsOfPeers(ctx context.Context, n, dim int) (bytes map[string]float64, err error) {
	folder := filepath.Join("scripts", "bench", "memory")
	cmd := exec.CommandContext(ctx, filepath.Join("assets", "venv-bench", "bin", "python"), filepath.Join(folder, "peers.py"), strconv.Itoa(min(n, peerRows)), strconv.Itoa(dim))
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(text, &bytes)
	}
	if err != nil {
		return nil, fmt.Errorf("measure FAISS: %w", err)
	}
	return bytes, nil
}
