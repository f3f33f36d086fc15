package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
)

const (
	// levelFile in the data directory has the cluster's level once it is more than 1:
	// older software must stop before it opens the rest.
	levelFile = "level"
	// levelBytesMax bounds what is read of it.
	levelBytesMax = 32
)

// level is what this node knows (metafsm.Level).
func (c Config) level() uint32 {
	if c.Level == 0 {
		return metafsm.Level
	}
	return c.Level
}

// recordLevel is a level as records have it: 0 for what all nodes know.
func recordLevel(level uint32) uint32 {
	if level <= 1 {
		return 0
	}
	return level
}

// checkLevelFile refuses a data directory with forms that this software does not know.
func checkLevelFile(dir string, known uint32) error {
	noted, err := readLevel(dir)
	if err == nil && noted > known {
		err = tooNew(noted, known)
	}
	return err
}

// readLevel gives the level that a data directory is known to have.
func readLevel(dir string) (uint32, error) {
	f, err := os.Open(filepath.Join(dir, levelFile))
	if errors.Is(err, fs.ErrNotExist) {
		return 1, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the level of the data directory: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, levelBytesMax))
	if err != nil {
		return 0, fmt.Errorf("read the level of the data directory: %w", err)
	}
	noted, err := strconv.ParseUint(strings.TrimSpace(string(raw)), 10, 32)
	if err != nil {
		return 0, fmt.Errorf("the level of the data directory is no number: %q", raw)
	}
	return uint32(noted), nil
}

// noteLevel keeps the cluster's level in the data directory, and gives the one that is
// kept there.
func noteLevel(dir string, level uint32) (uint32, error) {
	noted, err := readLevel(dir)
	if err != nil || level <= noted {
		return noted, err
	}
	return level, writeSynced(filepath.Join(dir, levelFile), strconv.AppendUint(nil, uint64(level), 10))
}

func tooNew(level, known uint32) error {
	return fmt.Errorf("%w: level %d, and this node knows %d: run a version that is at least as new as the other nodes", metafsm.ErrLevel, level, known)
}

// raiseLevel lets the cluster use new forms once every member of meta, whether it
// votes or has just been taken in, has said that it knows them. It runs on meta's
// leader.
func (n *Node) raiseLevel(ctx context.Context) error {
	nodes := n.groups.metaState.Nodes()
	lowest := n.cfg.level()
	for _, m := range n.groups.Members(id.Meta) {
		i := slices.IndexFunc(nodes, func(r metafsm.Node) bool { return r.Member == m })
		if i < 0 {
			return nil // it has not said yet what it knows
		}
		lowest = min(lowest, nodes[i].Knows())
	}
	for _, r := range nodes {
		if r.State != metafsm.NodeRemoved {
			lowest = min(lowest, r.Knows())
		}
	}
	if lowest <= n.groups.metaState.Level() {
		return nil
	}
	n.log.Info("all nodes know newer forms: the cluster uses them from now on, and older versions can't join any more", "level", lowest)
	return n.propose(ctx, metafsm.RaiseLevelOp.Encode(metafsm.RaiseLevel{Level: lowest}))
}

// checkLevel refuses to wait for a cluster that will not take this node in, because
// it uses forms that this software does not know.
func (n *Node) checkLevel(ctx context.Context) error {
	asked := 0
	for _, m := range n.gossip.Members() {
		if m.Cluster.IsZero() || m.Member == n.member {
			continue
		}
		if asked++; asked > standingAsked {
			break
		}
		theirs, err := n.askStanding(ctx, m.Member)
		if err == nil && theirs.Level > n.cfg.level() {
			return tooNew(theirs.Level, n.cfg.level())
		}
	}
	return nil
}

// askStanding asks a member what it knows of this node.
func (n *Node) askStanding(ctx context.Context, of id.Member) (theirs standing, err error) {
	body, err := json.Marshal(n.member)
	if err != nil {
		return theirs, fmt.Errorf("ask for this node's standing: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, standingTimeout)
	defer cancel()
	answer, err := n.peers.Call(ctx, of, methodStanding, body)
	if err != nil {
		return theirs, err
	}
	if err := json.Unmarshal(answer, &theirs); err != nil {
		return theirs, fmt.Errorf("read this node's standing: %w", err)
	}
	return theirs, nil
}
