package fill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"facet/internal/id"
	"facet/raftfsm"
)

const (
	electTimeout = time.Minute
	catchTimeout = 5 * time.Minute
	poll         = 10 * time.Millisecond
	// heartbeat is longer than a node's, so that no follower starts an election because
	// filling keeps the machine busy.
	heartbeat = time.Second
)

// place is the location of one member of a group.
type place struct {
	member id.Member
	dir    string // of the node's data
}

// group is a Raft group with all its members in this process.
type group struct {
	members []*raftfsm.Group
	leader  *raftfsm.Group
}

// stream is the stream layer of one member, on the loopback interface.
type stream struct{ net.Listener }

func (stream) Dial(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// openGroup opens all members of a group, each with a state machine of its own, and
// waits until one leads and has applied its whole log.
func openGroup(ctx context.Context, number id.Shard, places []place, machine func(i int) raftfsm.Machine) (g *group, err error) {
	addresses := make(map[id.Member]string, len(places))
	streams := make([]stream, len(places))
	for i, p := range places {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not wait
		if err != nil {
			return nil, fmt.Errorf("open group %d: %w", number, err)
		}
		streams[i], addresses[p.member] = stream{l}, l.Addr().String()
	}
	g = &group{}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	for i, p := range places {
		m, err := raftfsm.Open(raftfsm.Config{
			Group: number, Self: p.member, Dir: folder(p.dir, number), Stream: streams[i],
			Resolve: func(m id.Member) (string, error) { return addresses[m], nil },
			Log:     slog.New(slog.DiscardHandler), TrailingLogs: 1,
			Timing: raftfsm.Timing{Heartbeat: heartbeat, Election: heartbeat, Lease: heartbeat},
		}, machine(i))
		if err != nil {
			return nil, fmt.Errorf("open group %d of %s: %w", number, p.member, err)
		}
		g.members = append(g.members, m)
	}
	if err := g.elect(ctx); err != nil {
		return nil, fmt.Errorf("open group %d: %w", number, err)
	}
	return g, nil
}

func folder(dir string, number id.Shard) string {
	return filepath.Join(dir, fmt.Sprintf("group-%d", number))
}

// elect waits for a leader that has applied its log.
func (g *group) elect(ctx context.Context) error {
	for begin := time.Now(); ; time.Sleep(poll) {
		if i := slices.IndexFunc(g.members, (*raftfsm.Group).IsLeader); i >= 0 {
			g.leader = g.members[i]
			index, err := g.leader.ReadIndex(ctx)
			if err != nil {
				return fmt.Errorf("wait for its leader's log: %w", err)
			}
			return g.leader.WaitApplied(ctx, index)
		}
		if time.Since(begin) > electTimeout {
			return errors.New("it elects nobody")
		}
	}
}

// settle waits until every member has applied as much as the leader and has moved it
// from the log into segments, like a node that has run for a while.
func (g *group) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, catchTimeout)
	defer cancel()
	index, err := g.leader.ReadIndex(ctx)
	if err != nil {
		return err
	}
	for _, m := range g.members {
		for m.Applied() < index {
			if ctx.Err() != nil {
				return fmt.Errorf("a follower has applied %d of %d: %w", m.Applied(), index, ctx.Err())
			}
			time.Sleep(poll)
		}
		if err := m.Erase(time.Now().Add(time.Hour)); err != nil {
			return err
		}
	}
	return nil
}

func (g *group) close() (err error) {
	for _, m := range g.members {
		err = errors.Join(err, m.Close())
	}
	return err
}

// placesOf finds the folder of each voter: the folder that contains the voter's log.
func placesOf(servers []raftfsm.Server, nodes []Node) ([]place, error) {
	var places []place
	for _, s := range servers {
		i := slices.IndexFunc(nodes, func(n Node) bool { return strings.HasPrefix(string(s.Member), n.ID.String()) })
		if i < 0 || !s.Voter {
			return nil, fmt.Errorf("member %s has no folder here, or no vote", s.Member)
		}
		places = append(places, place{s.Member, nodes[i].Dir})
	}
	return places, nil
}
