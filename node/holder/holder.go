package holder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"facet/internal/id"
	"facet/internal/tick"
	"facet/node/loop"
	"facet/node/peer"
)

const (
	// MethodClaim is the request with which a process claims its identity.
	MethodClaim = "node.claim"

	// holdInterval is the time between two rounds of claims of a holder, askInterval that
	// of a newcomer.
	holdInterval = 500 * time.Millisecond
	askInterval  = 200 * time.Millisecond
	// claimTimeout is how long one claim may take: a round trip of half a second, and as
	// much again. A round with a node that does not answer takes as long, so it is less than
	// silence.
	claimTimeout = time.Second
	// waitLogInterval is how often a newcomer logs that it waits.
	waitLogInterval = 10 * time.Second
)

// Errors of a process that may not act.
var (
	// ErrWaiting is returned while a newcomer waits.
	ErrWaiting = errors.New("holder: the identity of this node is not confirmed yet")
	// ErrHeld is returned when another process holds the identity.
	ErrHeld = errors.New("holder: another process runs with this node's identity")
)

// Peers asks other nodes.
type Peers interface {
	// Ask sends the question q to a member and reads the answer into a.
	Ask(ctx context.Context, to id.Member, method string, q, a any) error
}

// Config configures a Holder.
type Config struct {
	Dir     string // the data directory
	Self    id.Member
	Address string // at which other nodes reach this one
	Peers   Peers
	// Members returns the members of the cluster as far as they are known.
	Members func() []id.Member
	// Voters returns the voters of meta.
	Voters func() []id.Member
	// Fail ends the node.
	Fail func(error)
	Log  *slog.Logger
}

// Holder decides whether this process may act for its member, and remembers which process
// may act for each other member. It is safe for concurrent use.
type Holder struct {
	*loop.Loop
	cfg     Config
	records *records

	mu    sync.RWMutex // guards the fields below; never held across a call
	place place
	// acts reports whether the process acts in groups that have confirmed it. settled reports
	// that it acts in all groups: its place is in its file.
	acts, settled bool
	confirmed     map[id.Member]bool // the nodes that have recorded place, unless settled
	since         time.Time          // when it became a newcomer
	logged        time.Time          // when it last logged that it waits
	ended         error
}

// Open reads the place and the records of a data directory.
func Open(c Config) (*Holder, error) {
	p, inPlace, err := openPlace(c.Dir, c.Address)
	if err != nil {
		return nil, err
	}
	of, err := openRecords(c.Dir, c.Log)
	if err != nil {
		return nil, err
	}
	if !inPlace {
		c.Log.Warn("the data directory was copied or moved, or the address changed: the node waits until no other process is heard with its identity")
	}
	return &Holder{
		Loop: loop.New("identity"), cfg: c, records: of, place: p, acts: inPlace, settled: inPlace, confirmed: map[id.Member]bool{}, since: time.Now(),
	}, nil
}

// Methods returns the handlers of the requests that other nodes send.
func (h *Holder) Methods() map[string]peer.Handler {
	return map[string]peer.Handler{MethodClaim: peer.Answers(h.records.serve)}
}

// Run claims the identity until ctx ends, and then releases it.
func (h *Holder) Run(ctx context.Context) {
	defer h.Start()()
	for ctx.Err() == nil {
		began, pause := time.Now(), askInterval
		switch err := h.Err(); {
		case err == nil:
			pause = tick.Until(holdInterval)
			h.hold(ctx)
		case errors.Is(err, ErrWaiting):
			h.seek(ctx)
		default:
			return // the node has failed
		}
		h.Done(h.Err())
		_ = loop.Pause(ctx, pause-time.Since(began))
	}
	if h.Err() == nil {
		h.claim(context.WithoutCancel(ctx), stepRelease)
	}
}

// Err returns why this process does not act for its member, or nil.
func (h *Holder) Err() error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.ended == nil && !h.acts {
		return ErrWaiting
	}
	return h.ended
}

// Holds asks the other nodes whether this process still acts for its member. If another one
// has taken the identity over, this one ends or waits as after any other round.
func (h *Holder) Holds(ctx context.Context) bool {
	if h.Err() == nil {
		h.hold(ctx)
	}
	return h.Err() == nil
}

// Token names this process's place in the messages of Raft.
func (h *Holder) Token() string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.place.Token
}

// MayAct returns an error if this process may not act in a group with these voters.
func (h *Holder) MayAct(voters func() []id.Member) error {
	h.mu.RLock()
	ok := h.acts && h.settled && h.ended == nil
	h.mu.RUnlock()
	if ok {
		return nil
	}
	list := voters() // takes locks of the group
	h.mu.RLock()
	defer h.mu.RUnlock()
	switch {
	case h.ended != nil:
		return h.ended
	case !h.acts || !h.settled && !h.enough(h.confirmed, list):
		return ErrWaiting
	default:
		return nil
	}
}

// Admits returns an error if token is not that of the process which acts for m.
func (h *Holder) Admits(m id.Member, token string) error { return h.records.admits(m, token) }

// Address returns the address of the process that acts for m, if this node has heard it
// lately.
func (h *Holder) Address(m id.Member) (string, bool) { return h.records.address(m) }

// Alarms describes, for operators, the identities with two processes.
func (h *Holder) Alarms() []string {
	list := h.records.alarms()
	if err := h.Err(); err != nil {
		list = append(list, err.Error())
	}
	return list
}

// Duplicates returns the number of identities of which this node has lately heard two
// processes.
func (h *Holder) Duplicates() int { return len(h.records.alarms()) }

// enough reports whether yes has a majority of the voters, this member not counted. A group
// with fewer other voters needs all of them.
func (h *Holder) enough(yes map[id.Member]bool, voters []id.Member) bool {
	others, count := 0, 0
	for _, m := range voters {
		if m == h.cfg.Self {
			continue
		}
		others++
		if yes[m] {
			count++
		}
	}
	return count >= min(len(voters)/2+1, others)
}

// reply is the outcome of a claim.
type reply struct {
	from id.Member
	answer
	err error
}

// claim sends a claim to all other members and returns their answers. A node of an older
// release grants every claim.
func (h *Holder) claim(ctx context.Context, s step) []reply {
	h.mu.RLock()
	q := claim{Member: h.cfg.Self, Token: h.place.Token, Takeovers: h.place.Takeovers, Address: h.cfg.Address, Step: s, Age: time.Since(h.since)}
	h.mu.RUnlock()
	members := slices.DeleteFunc(h.cfg.Members(), func(m id.Member) bool { return m == h.cfg.Self })
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	replies := make([]reply, len(members))
	var work sync.WaitGroup
	for i, m := range members {
		work.Go(func() { // ends with ctx
			r := reply{from: m}
			r.err = h.cfg.Peers.Ask(ctx, m, MethodClaim, q, &r.answer)
			if r.err != nil && strings.Contains(r.err.Error(), "unknown method") {
				r.err, r.answer = nil, answer{Granted: true}
			}
			replies[i] = r
		})
	}
	work.Wait()
	return slices.DeleteFunc(replies, func(r reply) bool { return r.err != nil })
}

// hold makes one round of a process that acts.
func (h *Holder) hold(ctx context.Context) {
	replies := h.claim(ctx, stepHold)
	for _, r := range replies {
		switch {
		case r.Granted:
		case r.Again:
			h.end(fmt.Errorf("%w: the one at %s has taken it over. If that one is meant, don't start this one again. "+
				"Else stop that one first. A copied data directory must not run twice: to add a node, start it with an empty one", ErrHeld, r.Address))
			return
		default:
			h.cfg.Log.WarnContext(ctx, "another process had taken this node's identity over: this one waits until it may take it back", "address", r.Address)
			h.becomeNewcomer()
			return
		}
	}
	h.settle(replies)
}

// settle records that the repliers have confirmed this process. When all members have, the
// place is written to its file, and the next start acts at once.
func (h *Holder) settle(replies []reply) {
	h.mu.Lock()
	if h.settled {
		h.mu.Unlock()
		return
	}
	for _, r := range replies {
		h.confirmed[r.from] = true
	}
	p := h.place
	h.mu.Unlock()
	for _, m := range h.cfg.Members() {
		if m != h.cfg.Self && !slices.ContainsFunc(replies, func(r reply) bool { return r.from == m }) {
			return
		}
	}
	if err := write(h.cfg.Dir, placeFile, p); err != nil {
		h.cfg.Log.Warn("the node's place is not recorded", "err", err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settled = true
}

// becomeNewcomer makes this process wait until it may take the identity over.
func (h *Holder) becomeNewcomer() {
	token, err := newToken()
	if err != nil {
		h.end(err)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.acts {
		return
	}
	h.place.Token, h.acts, h.settled, h.since = token, false, false, time.Now()
	clear(h.confirmed)
}

// seek makes one round of a newcomer.
func (h *Holder) seek(ctx context.Context) {
	replies := h.claim(ctx, stepAsk)
	yes, most, silent := map[id.Member]bool{}, h.place.Takeovers, true
	for _, r := range replies {
		most = max(most, r.Takeovers)
		yes[r.from] = r.Granted
		silent = silent && r.Granted
		if r.Again {
			h.end(fmt.Errorf("%w: the one at %s. If this one is meant, stop that one first. "+
				"A copied data directory must not run twice: to add a node, start it with an empty one", ErrHeld, r.Address))
			return
		}
	}
	voters := h.cfg.Voters()
	if !silent || !h.enough(yes, voters) {
		h.logWait(len(replies), silent)
		return
	}
	h.mu.Lock()
	h.place.Takeovers = most + 1
	h.mu.Unlock()
	taken := h.claim(ctx, stepTake)
	h.mu.Lock()
	clear(h.confirmed)
	for _, r := range taken {
		h.confirmed[r.from] = r.Granted
	}
	h.acts = h.enough(h.confirmed, voters)
	acts := h.acts
	h.mu.Unlock()
	if acts {
		h.cfg.Log.InfoContext(ctx, "this process has taken its node's identity over", "takeovers", most+1)
	}
}

// logWait logs why a newcomer waits.
func (h *Holder) logWait(answers int, silent bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.logged) < waitLogInterval {
		return
	}
	h.logged = time.Now()
	h.cfg.Log.Warn("the node waits for its identity: it was copied or moved, or its address changed, and a majority of the other nodes must not hear another process",
		"answers", answers, "silent", silent)
}

// end ends the node because of err.
func (h *Holder) end(err error) {
	h.mu.Lock()
	h.ended = err
	h.mu.Unlock()
	h.cfg.Fail(err)
}
