package node

import (
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"facet/internal/id"
	"facet/node/cert"
	"facet/node/httpapi"
	"facet/node/metrics"
	"facet/node/placement"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/shard/job"
)

// openMetrics creates this node's registry and the metrics that count work. Each node has
// its own, so two nodes of one process share none. readState adds the metrics that are read
// at each scrape.
func openMetrics(n *Node) {
	n.registry = prometheus.NewRegistry()
	metrics.RegisterProcess(n.registry)
	n.meters = metrics.NewWork(n.registry, httpapi.Refusals)
}

// state is a collector of the values that read sends (metrics.Catalogue).
type state struct {
	n    *Node
	read func(*Node, send)
}

// send takes one value.
type send func(d *metrics.Definition, v float64, labels ...string)

// Describe sends nothing, so that the registry does not check the values against a fixed
// list: the groups on this node change (prometheus.Collector).
func (state) Describe(chan<- *prometheus.Desc) {}

// Collect sends the present values (prometheus.Collector).
func (s state) Collect(out chan<- prometheus.Metric) {
	s.read(s.n, func(d *metrics.Definition, v float64, labels ...string) { out <- d.Value(v, labels...) })
}

// readState registers the collectors of the present state. All parts that the collectors
// read must be open.
func readState(n *Node) {
	for _, read := range []func(*Node, send){readGroups, readCluster, readKeys, readServer, readEngine, readMemory, readJobs, readDisk, readChecks, readQuotas, readExpiry, readReviews} {
		n.registry.MustRegister(state{n, read})
	}
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// since1970 returns a time in seconds since 1970, and 0 for the zero time.
func since1970(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixNano()) / 1e9
}

// readGroups reads the state of the replicas on this node.
func readGroups(n *Node, to send) {
	for _, number := range n.replicas.All() {
		group, ok := n.replicas.Group(number)
		if !ok {
			continue
		}
		label, s := strconv.Itoa(int(number)), group.Status()
		_, known := group.Leader()
		voter := false
		for _, server := range s.Servers {
			voter = voter || server.Voter && server.Member == n.member
		}
		to(metrics.GroupLeader, one(group.IsLeader()), label)
		to(metrics.GroupLeaderKnown, one(known), label)
		to(metrics.GroupVoter, one(voter), label)
		to(metrics.GroupTerm, float64(s.Term), label)
		to(metrics.GroupLast, float64(s.Last), label)
		to(metrics.GroupCommit, float64(s.Commit), label)
		to(metrics.GroupApplied, float64(s.Applied), label)
		to(metrics.GroupLag, float64(max(s.Commit, s.Applied)-s.Applied), label)
		to(metrics.GroupContact, s.LastContact.Seconds(), label)
		to(metrics.GroupStalled, s.Stalled.Seconds(), label)
		to(metrics.GroupLed, float64(s.Led), label)
		to(metrics.GroupProposals, float64(s.Proposals), label)
		to(metrics.GroupSnapshot, float64(s.Snapshot), label)
		to(metrics.GroupEntries, float64(max(s.Last, s.Snapshot)-s.Snapshot), label)
		to(metrics.GroupErased, since1970(s.Erased), label)
		to(metrics.GroupEraseTook, s.EraseTook.Seconds(), label)
		if machine, ok := n.replicas.Shard(number); ok {
			stats := machine.Shard().Stats()
			to(metrics.GroupEvents, float64(stats.Active), label)
			to(metrics.GroupDeleted, float64(stats.Deleted), label)
			to(metrics.GroupTemplates, float64(stats.TemplateBytes), label)
		}
	}
}

// readCluster reads meta's records and gossip.
func readCluster(n *Node, to send) {
	meta := n.replicas.Meta()
	alive := map[id.Member]bool{n.member: true}
	for _, m := range n.gossip.Members() {
		alive[m.Member] = true
	}
	cut := map[id.Node]bool{}
	for _, l := range n.links.Cut() {
		cut[l.To] = true
	}
	missing, draining := 0, 0
	for _, r := range meta.Nodes() {
		if r.State == metafsm.NodeRemoved {
			continue
		}
		if node, err := r.Member.Node(); err == nil {
			to(metrics.LinkCut, one(cut[node]), r.Name)
		}
		missing += int(one(!alive[r.Member]))
		draining += int(one(r.State == metafsm.NodeDraining))
	}
	cluster, _ := meta.Cluster()
	c := censusOf(meta.Shards().Shards, cluster.WantedReplicas(), alive)
	to(metrics.Ready, one(n.serving() == nil))
	to(metrics.NodesAlive, float64(len(alive)))
	to(metrics.NodesMissing, float64(missing))
	to(metrics.NodesDraining, float64(draining))
	to(metrics.NodesDuplicate, float64(n.holder.Duplicates()))
	to(metrics.GossipRefused, float64(n.gossip.Refused()))
	to(metrics.ShardsMoving, float64(c.moving))
	to(metrics.ReplicasMissing, float64(c.missing))
	to(metrics.ReplicasWanted, float64(cluster.WantedReplicas()))
	to(metrics.ShardsUnder, float64(c.under))
	to(metrics.ShardsAtRisk, float64(c.atRisk))
	to(metrics.BackupLast, since1970(n.backups.Last()))
	to(metrics.BackupInterval, n.backups.Interval().Seconds())
	to(metrics.Clock, since1970(n.clock.Wall()))
	to(metrics.BuildInfo, 1, wire.Version, wire.Revision(), runtime.Version(), placement.PackHint(n.cfg.Pack))
}

// readKeys reads the certificates and the keys that all nodes share.
func readKeys(n *Node, to send) {
	for name, source := range map[string]*cert.Source{"node": n.keys.Node(), "server": n.keys.Server()} {
		to(metrics.CertExpiry, float64(source.Leaf().NotAfter.Unix()), name)
	}
	to(metrics.CertExpiry, float64(n.keys.Node().AuthorityEnd().Unix()), "authority")
	for ring, keys := range n.keys.Shared() {
		var newest time.Time
		for _, k := range keys {
			if k.Since.After(newest) {
				newest = k.Since
			}
		}
		to(metrics.KeyMade, since1970(newest), ring)
		to(metrics.KeysHeld, float64(len(keys)), ring)
	}
}

// census counts shards on the move, missing replicas, shards with too few replicas, and
// shards that the death of one more node would stop.
type census struct{ moving, missing, under, atRisk int }

// censusOf takes the census of shards. wanted is how many replicas on live nodes each shard
// should have.
func censusOf(shards []metafsm.ShardVoters, wanted int, alive map[id.Member]bool) (c census) {
	for _, at := range shards {
		here := 0
		for _, m := range at.Voters {
			here += int(one(alive[m]))
		}
		c.moving += int(one(at.Moving))
		c.missing += max(wanted-here, 0)
		c.under += int(one(here < wanted))
		c.atRisk += int(one(here <= len(at.Voters)/2+1 && len(at.Voters) > 0 && (here < len(at.Voters) || here < 3)))
	}
	return c
}

// readServer reads the load of the public port.
func readServer(n *Node, to send) {
	l := n.api.Load()
	to(metrics.InFlight, float64(l.InFlight))
	to(metrics.Connections, float64(l.Connections))
	to(metrics.BodyBytes, float64(l.BodyBytes))
	to(metrics.BodyLimit, float64(l.BodyLimit))
}

// readMemory reads the memory that events take.
func readMemory(n *Node, to send) {
	arena := n.replicas.Arena().Use()
	to(metrics.MemoryArena, float64(arena.Planes), "planes")
	to(metrics.MemoryArena, float64(arena.Codes), "codes")
	to(metrics.MemoryArena, float64(arena.Exact), "exact")
	to(metrics.MemoryArena, float64(arena.Records), "records")
	to(metrics.MemoryEvents, float64(n.replicas.Memory()))
	to(metrics.MemoryCold, float64(n.room.Cold()))
	to(metrics.MemoryBudget, float64(n.limits.Budget()))
}

// readJobs reads the waiting files of bulk registrations on the shards that this node leads.
func readJobs(n *Node, to send) {
	waiting := 0
	for _, number := range n.replicas.Numbers() {
		group, ok := n.replicas.Group(number)
		if machine, here := n.replicas.Shard(number); ok && here && group.IsLeader() { // the node may close it meanwhile
			waiting += machine.Jobs().Left(job.Registrations)
		}
	}
	to(metrics.JobsQueued, float64(waiting))
	to(metrics.JobsLeased, float64(n.router.Leased()))
}

// readReviews reads the cases of doubtful verifications.
func readReviews(n *Node, to send) {
	f := n.router.CaseFigures()
	to(metrics.CasesOpen, float64(f.Open))
	to(metrics.CaseOldest, since1970(f.Oldest))
	for state, closed := range f.Closed {
		to(metrics.CasesClosed, float64(closed), state)
	}
	to(metrics.CasesDropped, float64(f.Dropped))
}

// readExpiry reads which events expire, and this node's clock. The next event is that of the shards
// that this node leads.
func readExpiry(n *Node, to send) {
	var next int64
	for _, number := range n.replicas.Numbers() {
		group, ok := n.replicas.Group(number)
		machine, here := n.replicas.Shard(number)
		if !ok || !here { // the node may close it meanwhile
			continue
		}
		stats := machine.Shard().ExpiryStats(n.router.Retention)
		to(metrics.GroupTimed, float64(stats.Timed), strconv.Itoa(int(number)))
		if group.IsLeader() && stats.Next != 0 && (next == 0 || stats.Next < next) {
			next = stats.Next
		}
	}
	expired, waiting := n.expirer.Counts()
	to(metrics.EventsExpired, float64(expired))
	to(metrics.ExpiryWaiting, float64(waiting))
	to(metrics.ExpiryNext, float64(next)/1000)
	to(metrics.ClockAgrees, one(n.clock.Compare().Agrees))
}

// nearQuota is from what part of a quota on a tenant counts as near to it.
const nearQuota = .8

// readQuotas counts the tenants that are near a quota, by meta's records here and by the
// shards that this node leads.
func readQuotas(n *Node, to send) {
	taken := map[id.Tenant]shardfsm.Taken{}
	for _, number := range n.replicas.Numbers() {
		group, ok := n.replicas.Group(number)
		if machine, here := n.replicas.Shard(number); ok && here && group.IsLeader() { // the node may close it meanwhile
			for t, of := range machine.Taken() {
				taken[t] = taken[t].Larger(of)
			}
		}
	}
	meta := n.replicas.Meta()
	near := map[metafsm.Quota]int{}
	all := meta.Used()
	for _, t := range meta.Tenants() {
		if all[t.ID] == nil {
			continue // the tenant is newer
		}
		router.AddTaken(all[t.ID], taken[t.ID])
		for q, used := range all[t.ID] {
			most, _ := t.Most(q)
			near[q] += int(one(float64(used) >= nearQuota*float64(most)))
		}
	}
	for _, q := range metafsm.Quotas() {
		if q != metafsm.QuotaRequests && q != metafsm.QuotaSearches { // of which nothing is kept
			to(metrics.NearQuota, float64(near[q]), q.String())
		}
	}
}

// readChecks reads the results of comparisons, and the reserve of the disk.
func readChecks(n *Node, to send) {
	compared, diverged := n.checks.Counts()
	to(metrics.Comparisons, float64(compared))
	to(metrics.Diverged, float64(diverged))
	to(metrics.ReplicasOut, float64(n.replicas.OutCount()))
	to(metrics.HistoryRewritten, float64(n.replicas.RewrittenCount()))
	to(metrics.StateLost, float64(n.detector.Count()))
	to(metrics.DiskReserve, float64(n.limits.Reserve()))
}

// readDisk reads the last measurement of the files.
func readDisk(n *Node, to send) {
	for number, f := range n.sizes.Groups() {
		label := strconv.Itoa(int(number))
		to(metrics.GroupDisk, float64(f.Log), label, "log")
		to(metrics.GroupDisk, float64(f.Snapshots), label, "snapshots")
		to(metrics.GroupDisk, float64(f.Segments), label, "segments")
		to(metrics.GroupDisk, float64(f.Codes), label, "codes")
		if !f.SnapshotAt.IsZero() {
			to(metrics.GroupSnapshotAt, time.Since(f.SnapshotAt).Seconds(), label)
		}
	}
	if free, size := n.sizes.Disk(); size > 0 {
		to(metrics.DiskFree, float64(free))
		to(metrics.DiskSize, float64(size))
	}
}

// answered counts requests of clients (httpapi.Meter).
type answered struct{ *metrics.Work }

// Answered counts o.
func (a answered) Answered(o httpapi.Outcome) { a.Request(metrics.Request(o)) }
