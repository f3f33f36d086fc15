package metafsm

import (
	"errors"
	"fmt"
)

// Nodes of different versions may run in one cluster. A new form of a command, record or
// request must wait until no node runs software that can't read it. The record of each
// node has the level that its software knows. When all nodes know a higher level than the
// cluster's, the leader raises the cluster's level for good. From then on no node that
// knows less may join. See docs/formats/commands.md.

// Level is the newest level that this software knows. It counts the forms of the commands
// and records of meta and shards, and of the requests between nodes. A release with a form
// that the release before can't read has the next level. It uses the form only when
// Machine.Level has reached that level.
const Level uint32 = 5

// The levels from which newer forms are sent and proposed.
const (
	// LevelRekey allows Rekey. From this level on Load refuses secrets that were wrapped
	// by another key than the cluster's.
	LevelRekey uint32 = 2
	// LevelJobEpoch allows the Epoch of shardfsm.BeginJob and of the request that asks
	// for it.
	LevelJobEpoch uint32 = 2
	// LevelReplicaMember allows a node's report on a replica to name the member.
	LevelReplicaMember uint32 = 2
	// LevelBatches allows snapshots of shards that keep operations and items of jobs in
	// files (shardfsm.Machine.Batch). A node writes them once its data directory records
	// that the cluster has this level.
	LevelBatches uint32 = 3
	// LevelCursor allows the After of the request for a page of a shard's list.
	LevelCursor uint32 = 4
	// LevelReplicas allows SetReplicas.
	LevelReplicas uint32 = 4
	// LevelQuotas allows SetTenant, the owners of remembered operations, and the shares in
	// the commands of shards. From this level on meta keeps quotas of tenants.
	LevelQuotas uint32 = 4
	// LevelTenants allows SetTenantState and DeleteTenant.
	LevelTenants uint32 = 5
	// LevelSubjects allows what subjects have beside faces: external ids, user data and
	// times of expiry; the MultipleFaces of applications; and SetSigner, the places of erasures in logs, and pages of matches.
	LevelSubjects uint32 = 5
	// LevelKeys allows holders, bounds and uses of access keys, and the roles that do one thing.
	LevelKeys uint32 = 5
	// LevelAudit allows audit logs, and settings and keys of tenants for them.
	LevelAudit uint32 = 5
	// LevelReview allows the review band of applications, cases, and the role that reviews them.
	LevelReview uint32 = 5
	// LevelPurpose allows purposes, legal grounds and recipients of galleries.
	LevelPurpose uint32 = 5
	// LevelIfMatch allows changes of galleries and applications that name the settings they change.
	LevelIfMatch uint32 = 5
	// LevelGrouped allows requests of several shards at once between nodes.
	LevelGrouped uint32 = 5
)

// ErrLevel is returned when the cluster's level is higher than this software knows.
var ErrLevel = errors.New("metafsm: the cluster uses forms of a newer version of the software")

// RaiseLevel raises the cluster's level to one that all its nodes know.
type RaiseLevel struct {
	Level uint32 `cbor:"1,keyasint"`
}

// RaiseLevelAnswer answers RaiseLevel. The status is Done, also if the level is as high
// already, or TooOld if a node does not know the level.
type RaiseLevelAnswer struct {
	Status Status `cbor:"1,keyasint"`
	// Level is the cluster's present level.
	Level uint32 `cbor:"2,keyasint"`
}

// NewKnowing returns the machine of a cluster that is not founded. It acts as software
// that knows the given level.
func NewKnowing(level uint32) *Machine {
	m := newMachine(limits)
	m.known = level
	return m
}

// Level returns the level of the cluster, at least 1.
func (m *Machine) Level() uint32 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.state.levelNow()
}

func (st *state) levelNow() uint32 { return max(1, st.level) }

// Knows returns the level that the node's software knows, at least 1.
func (n Node) Knows() uint32 { return max(1, n.Level) }

// tooHigh returns the ErrLevel of software that must not continue.
func tooHigh(level, known uint32) error {
	return fmt.Errorf("%w: level %d, this software knows %d: run a version at least as new as on the cluster's other nodes", ErrLevel, level, known)
}

func (c RaiseLevel) apply(m *Machine) RaiseLevelAnswer {
	status := c.do(m)
	return RaiseLevelAnswer{status, m.state.levelNow()}
}

func (c RaiseLevel) do(m *Machine) Status {
	to := c.Level
	if to <= m.state.levelNow() {
		return Done
	}
	for _, n := range m.state.nodes {
		if n.State != NodeRemoved && n.Knows() < to {
			return TooOld
		}
	}
	if to > m.known {
		panic(tooHigh(to, m.known).Error()) // this node was restarted with an older binary than its record says
	}
	m.state.level = to
	m.touch()
	return Done
}
