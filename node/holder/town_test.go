package holder_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/holder"
	"facet/node/loop"
)

// town has processes that send each other claims, in virtual time.
type town struct {
	t       *testing.T
	members []id.Member
	delay   time.Duration // of a claim and of an answer

	mu  sync.Mutex // guards all and cut
	all []*process
	cut map[[2]*process]bool
}

// process is one process of a member. It runs while Holder is set.
type process struct {
	town    *town
	number  int // of its member
	dir     string
	address string

	*holder.Holder
	failed error // guarded by town.mu
	end    func()
}

// newTown starts one process for each of n members. They have acted for longer than a
// holder may be silent.
func newTown(t *testing.T, n int) *town {
	w := &town{t: t, cut: map[[2]*process]bool{}}
	for i := range n {
		w.members = append(w.members, id.NewMember(id.Node{UUID: id.UUID{15: byte(i + 1)}}, 1))
	}
	for i := range n {
		w.add(i, filepath.Join(t.TempDir(), "data"), fmt.Sprintf("10.0.0.%d:7000", i+1)).start()
	}
	time.Sleep(3 * time.Second)
	return w
}

func (w *town) add(number int, dir, address string) *process {
	p := &process{town: w, number: number, dir: dir, address: address}
	must.Do(w.t, os.MkdirAll(dir, 0o700))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, p)
	return p
}

// copyOf adds a process on a copy of p's directory.
func (w *town) copyOf(p *process, address string) *process {
	dir := filepath.Join(w.t.TempDir(), "copy")
	must.Do(w.t, os.CopyFS(dir, os.DirFS(p.dir)))
	return w.add(p.number, dir, address)
}

func (p *process) start() {
	w := p.town
	h, err := holder.Open(holder.Config{
		Dir: p.dir, Self: w.members[p.number], Address: p.address, Peers: p,
		Members: func() []id.Member { return slices.Clone(w.members) },
		Voters:  func() []id.Member { return w.members },
		Fail: func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			p.failed = err
		},
		Log: slog.New(slog.DiscardHandler),
	})
	must.Do(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	w.mu.Lock()
	p.failed = nil
	p.Holder = h
	w.mu.Unlock()
	work.Go(func() { h.Run(ctx) })
	p.end = func() {
		cancel()
		work.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		p.Holder = nil
	}
}

// kill ends a process without its last words.
func (p *process) kill() {
	w := p.town
	w.mu.Lock()
	kept := w.cut
	w.cut = map[[2]*process]bool{}
	for _, q := range w.all {
		w.cut[[2]*process{p, q}] = true
	}
	w.mu.Unlock()
	p.end()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = kept
}

func (p *process) err() error {
	p.town.mu.Lock()
	defer p.town.mu.Unlock()
	return p.failed
}

// split cuts every link between the two sides.
func (w *town) split(one, other []*process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range one {
		for _, q := range other {
			w.cut[[2]*process{p, q}], w.cut[[2]*process{q, p}] = true, true
		}
	}
}

func (w *town) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.cut)
}

func (w *town) close() {
	for _, p := range w.all {
		if p.Holder != nil {
			p.end()
		}
	}
}

// Ask brings a claim to the running processes of a member (holder.Peers).
func (p *process) Ask(ctx context.Context, to id.Member, _ string, q, a any) error {
	p.town.mu.Lock()
	var target *holder.Holder
	for _, o := range p.town.all {
		if o != p && p.town.members[o.number] == to && o.Holder != nil && !p.town.cut[[2]*process{p, o}] {
			target = o.Holder
		}
	}
	p.town.mu.Unlock()
	if target == nil {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := loop.Pause(ctx, p.town.delay); err != nil {
		return err
	}
	raw, err := json.Marshal(q)
	var sent holder.Claim
	if err = errors.Join(err, json.Unmarshal(raw, &sent)); err != nil {
		return err
	}
	got, err := target.Receive(sent)
	if err != nil {
		return err
	}
	if raw, err = json.Marshal(got); err != nil {
		return err
	}
	if err := loop.Pause(ctx, p.town.delay); err != nil {
		return err
	}
	return json.Unmarshal(raw, a)
}

// leads reports whether a process could have a majority of meta.
func (w *town) leads(p *process) bool { return w.leadsOf(p, len(w.members)) }

// leadsOf reports whether a process could have a majority of a group of the first members:
// it acts, and enough others exchange messages with it.
func (w *town) leadsOf(p *process, voters int) bool {
	if p.Holder == nil || p.err() != nil || p.MayAct(func() []id.Member { return w.members[:voters] }) != nil {
		return false
	}
	votes := 1
	for _, o := range w.all {
		if o.number != p.number && o.number < voters && o.Holder != nil && o.Admits(w.members[p.number], p.Token()) == nil {
			votes++
		}
	}
	return votes > voters/2
}

func virtual(t *testing.T, n int, f func(t *testing.T, w *town)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, n)
		defer w.close()
		f(t, w)
	})
}
