package audit

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"facet/internal/id"
	"facet/internal/tick"
	"facet/node/audit/entry"
)

const (
	// sourcesMax is the most addresses of which a minute has a record of their own. The requests of all others
	// are in one more record: strangers fill at most 13 GB a year of a node's port.
	sourcesMax = 100
	// minutesMax is the most minutes that wait for a log. The oldest one is lost then.
	minutesMax = 60
	// refusalsInterval is how often this node looks for minutes that are over.
	refusalsInterval = 5 * time.Second
	// refusing and refusingOperators are the operations of the records: of the public port, and of the admin port.
	refusing          = "refuse requests"
	refusingOperators = "refuse requests at the admin port"
)

// Refusal is why a request was refused whose sender is not known, or may not use the admin port. It does not depend on
// the operation.
type Refusal uint8

// The reasons of refusals.
const (
	// NoSignature: the signature is missing, malformed or out of time.
	NoSignature Refusal = iota
	// UnknownKey: no access key has the id that the request names.
	UnknownKey
	// WrongSignature: the key's secret has not made the signature.
	WrongSignature
	// TooOften: the address has sent too many wrong signatures, so this one was not looked at.
	TooOften

	// NoCertificate and those after it are of the admin port: the request came without a certificate.
	NoCertificate
	// WrongCertificate: no trusted authority of this cluster has issued the certificate, or it is of a node that
	// was removed.
	WrongCertificate
	// WrongRole: the certificate is good for other requests only.
	WrongRole
	refusalsCount
)

var refusalNames = [refusalsCount]string{"NoSignature", "UnknownKey", "WrongSignature", "TooOften", "NoCertificate", "WrongCertificate", "WrongRole"}

// refused has numbers of requests by reason.
type refused [refusalsCount]uint64

// String names the reasons with their numbers.
func (n *refused) String() string {
	var words []string
	for why, k := range n {
		if k > 0 {
			words = append(words, fmt.Sprint(refusalNames[why], " ", k))
		}
	}
	return strings.Join(words, ", ")
}

func (n *refused) sum() (all uint64) {
	for _, k := range n {
		all += k
	}
	return all
}

// perMinute counts requests by minute and by a name. Those beyond its most names are counted under the zero name.
type perMinute[N comparable, C any] struct {
	most int

	mu sync.Mutex // guards minutes
	// minutes has the counts by minute since 1970. Those of the minutes that are over go to the log.
	minutes map[int64]map[N]*C
}

// refusals counts the refused requests of a port by address. The zero address stands for all others.
type refusals = perMinute[netip.Addr, refused]

// count adds a request to the count of a name, at a time.
func (c *perMinute[N, C]) count(at time.Time, name N, add func(*C)) {
	minute := at.Unix() / 60
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.minutes[minute]
	if m == nil {
		m = make(map[N]*C)
		if c.minutes == nil {
			c.minutes = make(map[int64]map[N]*C)
		}
		if len(c.minutes) == minutesMax {
			delete(c.minutes, slices.Min(slices.Collect(maps.Keys(c.minutes))))
		}
		c.minutes[minute] = m
	}
	if m[name] == nil && len(m) >= c.most {
		name = *new(N)
	}
	n := m[name]
	if n == nil {
		n = new(C)
		m[name] = n
	}
	add(n)
}

// take removes the minutes before one and returns them.
func (c *perMinute[N, C]) take(before int64) map[int64]map[N]*C {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := make(map[int64]map[N]*C)
	for minute, m := range c.minutes {
		if minute < before {
			taken[minute] = m
			delete(c.minutes, minute)
		}
	}
	return taken
}

// Refused counts a refused request, for the cluster's log. It waits for nothing.
func (r *Recorder) Refused(source netip.Addr, why Refusal) {
	of := &r.refusals
	if why >= NoCertificate {
		of = &r.operators
	}
	of.count(time.Now(), source.Unmap(), func(n *refused) { n[why]++ })
}

// keepRefusals records the minutes that are over, until ctx ends.
func (r *Recorder) keepRefusals(ctx context.Context) {
	for ctx.Err() == nil {
		_ = tick.Pause(ctx, refusalsInterval) // the loop checks ctx
		r.RecordRefusals(time.Now().Unix() / 60)
	}
}

// RecordRefusals records the counts of the minutes before one: of health a record for each access key, and for each
// port one for each address, and one for those beyond sourcesMax.
func (r *Recorder) RecordRefusals(before int64) {
	ctx, cancel := context.WithTimeout(r.stop, sendTimeout)
	defer cancel()
	recordHealth(r, r.health.take(before))
	if _, err := r.cfg.Log.BeginAudit(ctx, id.ClusterLog); err != nil {
		return // they wait
	}
	recordRefusals(r, refusing, r.refusals.take(before))
	recordRefusals(r, refusingOperators, r.operators.take(before))
}

// recordRefusals records counts with an operation.
func recordRefusals(r *Recorder, operation string, taken map[int64]map[netip.Addr]*refused) {
	for _, minute := range slices.Sorted(maps.Keys(taken)) {
		m := taken[minute]
		for _, source := range slices.SortedFunc(maps.Keys(m), netip.Addr.Compare) {
			n := m[source]
			e := entry.New(entry.Act, time.Unix(60*minute, 0))
			e.Operation, e.Reason, e.Count = operation, n.String(), n.sum()
			if source.IsValid() {
				e.From(source)
			}
			r.Correct(id.ClusterLog, Event{Record: e})
		}
	}
}
