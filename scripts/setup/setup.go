package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"facet/engine/models"
)

// maxParallel is the most packages fetched, or files hashed, at once.
const maxParallel = 3

const sourcesFile = "photos/SOURCES.md"

// setup is one run.
type setup struct {
	assets      string // the folder assets/
	packages    []*pkg
	conversions []conversion
	copies      []copied

	mu  sync.Mutex // guards out
	out io.Writer
}

// plan lists the results that are missing or wrong.
type plan struct {
	fetch    []*pkg
	convert  []*conversion
	copy     []*copied
	nFiles   int // checked
	nMissing int // of those
	bytes    int64
}

func (p *plan) empty() bool { return len(p.fetch)+len(p.convert)+len(p.copy) == 0 }

func (s *setup) run(ctx context.Context) error {
	began := time.Now()
	todo, err := s.fetchMissing(ctx)
	if err != nil {
		return err
	}
	renewed, err := s.texts()
	if err != nil {
		return err
	}
	pack, err := models.Open(filepath.Join(s.assets, "packs", models.FoundingPack))
	if err != nil {
		return err
	}
	took := time.Since(began).Round(10 * time.Millisecond)
	switch {
	case !todo.empty():
		s.say("  ready    %d files checked; model pack %q, version %s, identity %.16s…, in %v\n",
			todo.nFiles, pack.Manifest.Name, pack.Manifest.Version, pack.ID, took)
	case len(renewed) > 0:
		s.say("set-up: renewed %s; nothing to fetch (%d files checked in %v)\n", strings.Join(renewed, ", "), todo.nFiles, took)
	default:
		s.say("set-up: nothing to do (%d files checked in %v)\n", todo.nFiles, took)
	}
	return nil
}

// fetchMissing makes the results that are missing, and returns what was to do.
func (s *setup) fetchMissing(ctx context.Context) (*plan, error) {
	todo, err := s.plan(ctx)
	if err == nil && !todo.empty() {
		err = s.locked(ctx, s.work)
	}
	return todo, err
}

// plan checks every result by size and SHA-256.
func (s *setup) plan(ctx context.Context) (*plan, error) {
	p := new(plan)
	group, _ := errgroup.WithContext(ctx)
	group.SetLimit(maxParallel)
	var mu sync.Mutex // guards p and lacks
	lacks := make(map[any]bool)
	check := func(r result, of any) {
		p.nFiles++
		p.bytes += r.Size
		group.Go(func() error {
			ok, err := present(s.assets, r)
			if err != nil || ok {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			p.nMissing++
			lacks[of] = true
			return nil
		})
	}
	for _, pk := range s.packages {
		for _, m := range pk.Members {
			check(m.result, pk)
		}
	}
	for i := range s.conversions {
		check(s.conversions[i].Model, &s.conversions[i])
	}
	for i := range s.copies {
		check(s.copies[i].result, &s.copies[i])
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("check what is there: %w", err)
	}
	for _, pk := range s.packages {
		if lacks[pk] {
			p.fetch = append(p.fetch, pk)
		}
	}
	for i := range s.conversions {
		if c := &s.conversions[i]; lacks[c] {
			p.convert = append(p.convert, c)
		}
	}
	for i := range s.copies {
		if c := &s.copies[i]; lacks[c] {
			p.copy = append(p.copy, c)
		}
	}
	return p, nil
}

// locked runs work with a new folder for temporary files, and removes the folder.
// Meanwhile no other set-up works in the same assets folder.
func (s *setup) locked(ctx context.Context, work func(ctx context.Context, tmp string) error) error {
	cache := filepath.Join(s.assets, "cache")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(cache, "setup.lock"))
	if err != nil {
		return err
	}
	defer file.Close() // closing gives the lock back
	if err := s.lockFile(ctx, file); err != nil {
		return err
	}
	// Killed runs have left temporary folders. This process holds the lock, so no
	// other run uses them.
	left, err := filepath.Glob(filepath.Join(cache, "tmp-*"))
	if err != nil {
		return err
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	tmp, err := os.MkdirTemp(cache, "tmp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp) // removed by the next run otherwise
	return work(ctx, tmp)
}

// lockFile waits until the file's lock is free or ctx ends.
func (s *setup) lockFile(ctx context.Context, file *os.File) error {
	for said := false; ; said = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return nil
		}
		if err != syscall.EWOULDBLOCK && err != syscall.EINTR { // a bare Errno
			return fmt.Errorf("lock assets/cache/setup.lock: %w", err)
		}
		if !said {
			s.say("set-up: another set-up is running here, waiting for it\n")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// work fetches and converts what is missing. It plans again first, because
// another set-up may have done the work while this one waited for the lock.
func (s *setup) work(ctx context.Context, tmp string) error {
	todo, err := s.plan(ctx)
	if err != nil || todo.empty() {
		return err
	}
	clients, err := findClients(ctx, todo.fetch)
	if err != nil {
		return err
	}
	s.announce(todo)
	group, fetching := errgroup.WithContext(ctx)
	group.SetLimit(maxParallel)
	for _, p := range todo.fetch {
		group.Go(func() error { return s.bring(fetching, clients, p, tmp) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if len(todo.convert) > 0 {
		interpreter, err := python(ctx, tmp)
		if err != nil {
			return err
		}
		for _, c := range todo.convert {
			if err := s.convert(ctx, c, interpreter, tmp); err != nil {
				return err
			}
		}
	}
	for _, c := range todo.copy {
		if err := s.copy(c, tmp); err != nil {
			return err
		}
	}
	return nil
}

func (s *setup) announce(todo *plan) {
	var bytes int64
	var by []string
	for _, p := range todo.fetch {
		bytes += p.Size
		if c := p.Kind.client(); !slices.Contains(by, c) {
			by = append(by, c)
		}
	}
	s.say("set-up: %d of %d files are missing or not as assets/lock.json says\n", todo.nMissing, todo.nFiles)
	if len(todo.fetch) > 0 {
		s.say("  fetching %s by %s; all results together take %s under assets/\n",
			megabytes(bytes), strings.Join(by, " and "), megabytes(todo.bytes))
	}
}

func (s *setup) fetch(ctx context.Context, c clients, p *pkg, tmp string) error {
	began := time.Now()
	dir, err := os.MkdirTemp(tmp, "fetch-")
	if err != nil {
		return err
	}
	name, err := c.fetch(ctx, p, dir)
	if err != nil {
		return err
	}
	if err := s.unpack(name, p, tmp); err != nil {
		return fmt.Errorf("unpack %s: %w", p, err)
	}
	s.say("  fetched  %-38s %9s by %s, %d files, %.1f s: %s\n",
		p, megabytes(p.Size), p.Kind.client(), len(p.Members), time.Since(began).Seconds(), p.About)
	return os.RemoveAll(dir)
}

// unpack places the members of a fetched archive.
func (s *setup) unpack(name string, p *pkg, tmp string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	put := func(m member, r io.Reader) error { return place(s.assets, tmp, m.result, r) }
	return bounds.unpack(io.NewSectionReader(file, 0, p.Size), p.Kind, p.Members, put)
}

// text is a file whose content comes from the repository.
type text struct {
	to   string
	data []byte
}

// texts writes the files that are generated from the repository: the manifests and
// notices of the packs, and the note on the photos. It returns the names of the files that it
// wrote.
func (s *setup) texts() ([]string, error) {
	list, err := manifests()
	if err != nil {
		return nil, err
	}
	var renewed []string
	for _, text := range append(list, text{sourcesFile, s.sources()}) {
		wrote, err := placeText(s.assets, filepath.Join(s.assets, "cache"), text.to, text.data)
		if err != nil {
			return nil, err
		}
		if wrote {
			renewed = append(renewed, text.to)
		}
	}
	return renewed, nil
}

// sources returns the note about the photos, which lies beside them.
func (s *setup) sources() []byte {
	var b bytes.Buffer
	b.WriteString("# Where these photos come from\n\nFetched by `go run ./scripts/setup`; not part of facet. The licences lie beside them.\n")
	for _, p := range s.packages {
		var names []string
		for _, m := range p.Members {
			if dir, name, _ := strings.Cut(m.To, "/"); dir == "photos" {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			fmt.Fprintf(&b, "\n## %s %s (%s)\n%s. Licence: %s.\n\n- %s\n", p.Package, p.Version, p.Kind.client(),
				p.About, p.Licence, strings.Join(names, "\n- "))
		}
	}
	return b.Bytes()
}

func (s *setup) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(s.out, format, args...) // nobody to tell
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
