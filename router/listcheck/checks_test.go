package listcheck

import (
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"facet/engine/score"
	"facet/internal/id"
	"facet/internal/must"
	"facet/router/calls"
)

const dim = 192

var (
	tenant = Owner{id.Tenant{UUID: id.UUID{1}}, id.Application{UUID: id.UUID{1}}}
	other  = Owner{id.Tenant{UUID: id.UUID{2}}, id.Application{UUID: id.UUID{2}}}
	name   = id.UUID{7}
)

func newChecks(tb testing.TB) *Checks {
	tb.Helper()
	table, err := score.NewTable([]score.Point{{Cosine: -1}, {Cosine: .4, Score: 7000}, {Cosine: score.Same, Score: score.Max}, {Cosine: 1, Score: score.Max}})
	must.Do(tb, err)
	return New(table)
}

// person returns the template of a random person.
func person(seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 0))
	v, sum := make([]float32, dim), 0.0
	for i := range v {
		v[i] = float32(r.NormFloat64())
		sum += float64(v[i]) * float64(v[i])
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}

func row(n uint32, seed uint64) Row {
	return Row{Number: n, Template: person(seed), Threshold: 7000}
}

// want compares a row and checks which rows it is equal to.
func want(t *testing.T, c *Checks, r Row, rows ...uint32) {
	t.Helper()
	got, err := c.Compare(name, tenant, r)
	if err != nil || len(got) != len(rows) {
		t.Fatalf("row %d: %v, %v; want %v", r.Number, got, err, rows)
	}
	found := map[uint32]bool{}
	for _, d := range got {
		found[d.Row] = d.Score >= r.Threshold
	}
	for _, n := range rows {
		if !found[n] {
			t.Errorf("row %d: %v, want %v", r.Number, got, rows)
		}
	}
}

func wantReason(t *testing.T, err error, kind calls.Kind, reason string) {
	t.Helper()
	e, ok := errors.AsType[*calls.Error](err)
	if !ok || e.Kind != kind || e.Reason != reason {
		t.Errorf("error %v, want kind %d, reason %q", err, kind, reason)
	}
}

func TestChecksFindDoubles(t *testing.T) {
	c := newChecks(t)
	must.Do(t, c.Begin(name, tenant))
	want(t, c, row(1, 1))
	want(t, c, row(2, 2))
	want(t, c, row(3, 1), 1)
	want(t, c, row(3, 1), 1) // sent again: not equal to itself
	want(t, c, row(4, 1), 1, 3)
	want(t, c, row(3, 9)) // its new photo replaces the former
	want(t, c, row(5, 1), 1, 4)
}

func TestConcurrentDoublesFindEachOther(t *testing.T) {
	c := newChecks(t)
	must.Do(t, c.Begin(name, tenant))
	const pairs = 200
	var work sync.WaitGroup
	found := make([]bool, 2*pairs)
	for i := range 2 * pairs {
		work.Go(func() {
			got, err := c.Compare(name, tenant, row(uint32(i), uint64(i/2)))
			found[i] = err == nil && len(got) == 1 && got[0].Row == uint32(i^1)
		})
	}
	work.Wait()
	for i := range pairs {
		if found[2*i] == found[2*i+1] {
			t.Errorf("pair %d: found by the first %v, by the second %v", i, found[2*i], found[2*i+1])
		}
	}
}

func TestCheckIsOfItsApplication(t *testing.T) {
	c := newChecks(t)
	must.Do(t, c.Begin(name, tenant))
	for _, stranger := range []Owner{other, {tenant.Tenant, other.Application}} {
		_, err := c.Compare(name, stranger, row(1, 1))
		wantReason(t, err, calls.NotFound, ReasonUnknown)
		wantReason(t, c.End(name, stranger), calls.NotFound, ReasonUnknown)
	}
	want(t, c, row(1, 1))
}

func TestEndedCheckIsZeroed(t *testing.T) {
	c := newChecks(t)
	must.Do(t, c.Begin(name, tenant))
	want(t, c, row(1, 1))
	k := c.open[name]
	m, bytes := k.matrix, c.Bytes()
	if bytes < dim*4 || bytes > 1<<20 {
		t.Errorf("a row takes %d bytes", bytes)
	}
	must.Do(t, c.End(name, tenant))
	if m.Len() != 0 || c.Bytes() != 0 || k.arena.Used() != 0 {
		t.Errorf("after the end there are %d templates, %d bytes", m.Len(), c.Bytes())
	}
	_, err := c.Compare(name, tenant, row(2, 2))
	wantReason(t, err, calls.NotFound, ReasonUnknown)
	wantReason(t, c.End(name, tenant), calls.NotFound, ReasonUnknown)
}

func TestIdleCheckExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newChecks(t)
		must.Do(t, c.Begin(name, tenant))
		for n := range uint32(3) { // in use it stays
			time.Sleep(IdleMax - time.Second)
			want(t, c, row(n, uint64(n)))
		}
		time.Sleep(IdleMax + time.Second)
		synctest.Wait()
		if c.Bytes() != 0 || len(c.open) != 0 {
			t.Errorf("%d checks are open, with %d bytes", len(c.open), c.Bytes())
		}
		_, err := c.Compare(name, tenant, row(9, 9))
		wantReason(t, err, calls.NotFound, ReasonUnknown)
	})
}

func TestChecksAreBounded(t *testing.T) {
	c := newChecks(t)
	defer c.Close()
	for i := range tenantChecksMax {
		must.Do(t, c.Begin(id.UUID{1, byte(i)}, tenant))
	}
	wantReason(t, c.Begin(name, tenant), calls.Busy, "")
	for i := range nodeChecksMax - tenantChecksMax {
		must.Do(t, c.Begin(id.UUID{2, byte(i)}, Owner{Tenant: id.Tenant{UUID: id.UUID{9, byte(i)}}}))
	}
	wantReason(t, c.Begin(name, other), calls.Busy, "")
}

func TestRowsOfChecksAreBounded(t *testing.T) {
	c := newChecks(t)
	defer c.Close()
	second, foreign := id.UUID{8}, id.UUID{9}
	for n, owner := range map[id.UUID]Owner{name: tenant, second: tenant, foreign: other} {
		must.Do(t, c.Begin(n, owner))
	}
	want(t, c, row(1, 1))
	c.rows.Take(tenant.Tenant, RowsMax-1)
	c.open[name].rows = RowsMax
	_, err := c.Compare(name, tenant, row(2, 2))
	wantReason(t, err, calls.InvalidRequest, ReasonFull)
	_, err = c.Compare(second, tenant, row(2, 2))
	wantReason(t, err, calls.Busy, "")
	if _, err := c.Compare(foreign, other, row(2, 2)); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	for c.rows.Take(other.Tenant, 1) { // its share of the node
	}
	_, err = c.Compare(foreign, other, row(3, 3))
	wantReason(t, err, calls.Busy, "")
	third := Owner{Tenant: id.Tenant{UUID: id.UUID{7}}}
	must.Do(t, c.Begin(id.UUID{7}, third))
	if _, err := c.Compare(id.UUID{7}, third, row(1, 1)); err != nil {
		t.Errorf("a third tenant: %v", err)
	}
}

// BenchmarkCompare compares a row with a full check.
func BenchmarkCompare(b *testing.B) {
	for _, rows := range []uint32{5_000, RowsMax} {
		b.Run(strconv.Itoa(int(rows)), func(b *testing.B) {
			c := newChecks(b)
			defer c.Close()
			must.Do(b, c.Begin(name, tenant))
			for n := range rows {
				if _, err := c.Compare(name, tenant, row(n, uint64(n))); err != nil {
					b.Fatal(err)
				}
			}
			again := row(1, 1)
			for b.Loop() {
				if _, err := c.Compare(name, tenant, again); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(c.Bytes())/float64(rows), "bytes/row")
		})
	}
}
