package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"facet/internal/id"
	"facet/node/audit/entry"
)

// A monitor asks for health every few seconds, and asks for nobody's data. So its requests are counted, and a
// minute of an access key has one record.

// askingHealth is the operation of these records.
const askingHealth = "ask for health"

// Asker is an access key whose signature was right.
type Asker struct {
	Tenant      id.Tenant
	Key, Holder string
}

// statuses has numbers of answers by status.
type statuses map[int]uint64

// String names the statuses with their numbers.
func (n statuses) String() string {
	var words []string
	for _, status := range slices.Sorted(maps.Keys(n)) {
		words = append(words, fmt.Sprint(status, " ", n[status]))
	}
	return strings.Join(words, ", ")
}

// Health counts an answer to a request for health. It waits for nothing.
func (r *Recorder) Health(who Asker, status int) {
	r.health.count(time.Now(), who, func(n *statuses) {
		if *n == nil {
			*n = make(statuses)
		}
		(*n)[status]++
	})
}

// recordHealth records counts in the logs of their tenants.
func recordHealth(r *Recorder, taken map[int64]map[Asker]*statuses) {
	for _, minute := range slices.Sorted(maps.Keys(taken)) {
		for who, n := range taken[minute] {
			e := entry.New(entry.Act, time.Unix(60*minute, 0))
			e.Operation, e.Reason, e.Key, e.Holder = askingHealth, n.String(), who.Key, who.Holder
			for _, k := range *n {
				e.Count += k
			}
			r.Correct(who.Tenant, Event{Record: e})
		}
	}
}
