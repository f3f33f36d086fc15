package holder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"facet/internal/id"
	"facet/node/transport"
)

const (
	// silence is how long a holder must not have been heard before another process may take
	// its identity over.
	silence = 2 * time.Second
	// lateness is how long after a process ended its last claim may still arrive. A holder
	// counts as heard again only when it is heard later than this after the newcomer's start.
	lateness = time.Second
	// alarmTime is how long a second process of one identity is reported after it was heard.
	alarmTime = 5 * time.Minute
	// recordsMax is the most holders that are recorded.
	recordsMax = 1024
	// textBytesMax is the most bytes of a token or an address in a claim.
	textBytesMax = 256
)

// step is the purpose of a claim.
type step string

const (
	stepHold    step = "hold"    // the process acts
	stepAsk     step = "ask"     // a newcomer asks whether the holder was heard
	stepTake    step = "take"    // a newcomer takes over
	stepRelease step = "release" // the process ends
)

// claim is a message in which a process describes itself to each other node.
type claim struct {
	Member    id.Member `json:"member"`
	Token     string    `json:"token"`
	Takeovers uint64    `json:"takeovers"`
	Address   string    `json:"address"`
	Step      step      `json:"step"`
	// Age is how long a newcomer has waited.
	Age time.Duration `json:"age,omitempty"`
}

// answer is a node's answer to a claim.
type answer struct {
	Granted bool `json:"granted"`
	// Takeovers and Address describe the recorded holder.
	Takeovers uint64 `json:"takeovers"`
	Address   string `json:"address,omitempty"`
	// Again reports that the node heard the holder after the refused process had started.
	Again bool `json:"again,omitempty"`
}

// record is the holder of one identity.
type record struct {
	Token     string `json:"token"`
	Takeovers uint64 `json:"takeovers"`
	Address   string `json:"address"`

	heard time.Time // the holder's last claim; zero before the first one, and after a release
	// rival is the address of a second process, alarmed when both were last heard.
	rival   string
	alarmed time.Time
}

// records are the holders that this node knows. Their methods are safe for concurrent use.
type records struct {
	dir     string
	log     *slog.Logger
	started time.Time

	saving sync.Mutex // is held during a change of of and of its file; taken before mu
	mu     sync.Mutex // guards of and its elements; never held during I/O
	of     map[id.Member]*record
}

func openRecords(dir string, log *slog.Logger) (*records, error) {
	r := &records{dir: dir, log: log, started: time.Now(), of: map[id.Member]*record{}}
	_, err := read(dir, holdersFile, &r.of)
	maps.DeleteFunc(r.of, func(_ id.Member, k *record) bool { return k == nil })
	return r, err
}

// serve answers a claim of another node.
func (r *records) serve(ctx context.Context, q claim) (answer, error) {
	node, err := q.Member.Node()
	if caller, ok := transport.Caller(ctx); err != nil || !ok || caller != node {
		return answer{}, errors.New("a node may claim its own identity only")
	}
	if q.Token == "" || len(q.Token) > textBytesMax || len(q.Address) > textBytesMax {
		return answer{}, errors.New("the claim is malformed")
	}
	return r.answer(q)
}

func (r *records) answer(q claim) (answer, error) {
	r.saving.Lock()
	defer r.saving.Unlock()
	now := time.Now()
	r.mu.Lock()
	k := r.of[q.Member]
	same := k != nil && k.Token == q.Token
	granted, changes, again := false, false, false
	switch q.Step {
	case stepHold:
		granted = k == nil || same || q.Takeovers > k.Takeovers
		changes = granted && (k == nil || k.Token != q.Token || k.Takeovers != q.Takeovers)
		again = !granted && k.isHeard(now)
	case stepAsk:
		granted = same || r.silent(k, now)
		again = !granted && k.isHeard(now) && now.Sub(k.heard)+lateness < q.Age
	case stepTake:
		granted = same || r.silent(k, now) && (k == nil || q.Takeovers > k.Takeovers)
		changes = granted
	case stepRelease:
		if same {
			k.heard = time.Time{}
		}
	}
	first := again && (k.rival != q.Address || now.Sub(k.alarmed) > alarmTime)
	if again {
		k.rival, k.alarmed = q.Address, now
	}
	r.mu.Unlock()
	if first {
		r.log.Error("two processes run as one node: was its data directory copied?", "node", q.Member, "refused", q.Address)
	}
	if changes {
		if err := r.put(q); err != nil {
			return answer{}, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k = r.of[q.Member]
	if k == nil {
		return answer{Granted: granted}, nil
	}
	if granted && q.Step != stepAsk {
		k.heard = now
	}
	return answer{Granted: granted, Takeovers: k.Takeovers, Address: k.Address, Again: again}, nil
}

// isHeard reports whether the holder was heard within silence.
func (k *record) isHeard(now time.Time) bool {
	return k != nil && !k.heard.IsZero() && now.Sub(k.heard) < silence
}

// silent reports whether this node would have heard a holder for the time of silence, and
// has not.
func (r *records) silent(k *record, now time.Time) bool {
	return now.Sub(r.started) >= silence && !k.isHeard(now)
}

// put records q's process as the holder, in the file first. The caller holds saving.
func (r *records) put(q claim) error {
	r.mu.Lock()
	next := maps.Clone(r.of)
	r.mu.Unlock()
	k := &record{Token: q.Token, Takeovers: q.Takeovers, Address: q.Address}
	if old := next[q.Member]; old != nil {
		if old.Token != q.Token {
			r.log.Warn("another process took a node's identity over", "node", q.Member, "address", q.Address, "before", old.Address)
		}
		k.rival, k.alarmed = old.rival, old.alarmed
	} else if len(next) >= recordsMax {
		delete(next, r.oldest(next))
	}
	next[q.Member] = k
	if err := write(r.dir, holdersFile, next); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of = next
	return nil
}

// oldest returns the member whose holder was not heard for the longest time.
func (r *records) oldest(of map[id.Member]*record) id.Member {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.MinFunc(slices.Sorted(maps.Keys(of)), func(a, b id.Member) int { return of[a].heard.Compare(of[b].heard) })
}

// admits returns an error if a message of member m comes from another process than the
// holder's.
func (r *records) admits(m id.Member, token string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.of[m]; k != nil && token != k.Token {
		return fmt.Errorf("%s: another process holds its identity, at %s", m, k.Address)
	}
	return nil
}

// address returns the address of a holder that was heard within silence.
func (r *records) address(m id.Member) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.of[m]
	if !k.isHeard(time.Now()) {
		return "", false
	}
	return k.Address, true
}

// alarms describes the identities of which two processes were heard lately.
func (r *records) alarms() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []string
	for _, m := range slices.Sorted(maps.Keys(r.of)) {
		if k := r.of[m]; !k.alarmed.IsZero() && time.Since(k.alarmed) < alarmTime {
			list = append(list, fmt.Sprintf("two processes run as member %s: the one at %s holds the identity, the one at %s is refused; "+
				"stop the one with the copied data directory", m, k.Address, k.rival))
		}
	}
	return list
}
