package shardfsm

import (
	"math/rand/v2"
	"slices"
	"testing"

	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/job"
)

func jobOf(g, n byte) JobName {
	return JobName{Gallery: id.Gallery{UUID: id.UUID{g}}, Generation: 1, Batch: id.Batch{UUID: id.UUID{g, n, 1}}}
}

// jobCommands returns all commands of a job of two items, in order.
func jobCommands(n JobName) []any {
	const at = 1_700_000_000_000
	result := job.Result{Index: 1, Attempts: 2, Success: true, Subject: id.Subject{UUID: id.UUID{5}}, Event: id.Event{UUID: id.UUID{6}}, Sealed: []byte{7}}
	return []any{
		BeginJob{Name: n, Application: id.Application{UUID: id.UUID{4}}, Request: [16]byte{1}, Total: 2, Time: at},
		AddJob{Name: n, First: 0, Items: [][]byte{{1}, {2, 3}}, Time: at + 1},
		OpenJob{Name: n, Time: at + 2},
		FinishJob{Name: n, Results: []job.Result{result}, Time: at + 3},
		ExpireJobs{Time: at + 4},
		BeginJob{Name: n, Application: id.Application{UUID: id.UUID{4}}, Request: [16]byte{1}, Total: 2, Time: at, Epoch: 3},
	}
}

// pairCommands returns all commands of a comparison of a gallery with itself, in order. The next one
// replaces it.
func pairCommands(n, next JobName) []any {
	const at = 1_700_000_000_005
	result := job.Result{Attempts: 1, Sealed: []byte{7, 8}, Pairs: 3}
	redacted := job.Result{Attempts: 1, Sealed: []byte{7}, Pairs: 2}
	begin := BeginJob{Name: n, Application: id.Application{UUID: id.UUID{4}}, Request: [16]byte{2}, Total: 1, Time: at, Kind: job.Duplicates}
	begin.Holder, begin.Write = id.UUID{5}, JobWrite{Op: id.Operation{6}, Request: begin.Request, Keyed: true, Share: Share{Tenant: id.Tenant{UUID: id.UUID{3}}, Writes: 9}}
	replacing := begin
	replacing.Name, replacing.Write = next, JobWrite{}
	return []any{
		begin,
		AddJob{Name: n, Items: [][]byte{{1}}, Time: at + 1},
		OpenJob{Name: n, Time: at + 2, Write: begin.Write},
		FinishJob{Name: n, Results: []job.Result{result}, Time: at + 3},
		RedactJob{Name: n, Results: []job.Result{redacted}, Time: at + 4},
		replacing,
		AddJob{Name: next, Items: [][]byte{{1}}, Time: at + 5},
		OpenJob{Name: next, Time: at + 6},
		DropJob{Name: n, Time: at + 7}, // gone already
	}
}

// putCommands returns all commands of the pairs of different subjects of a gallery and its cases, in order.
func putCommands(n JobName) []any {
	const at = 1_700_000_000_013
	return []any{
		PutItem{Name: n, New: []byte{1}, Time: at},
		PutItem{Name: n, Index: 1, New: []byte{2}, Time: at + 1, Share: JobShare{Tenant: id.Tenant{UUID: id.UUID{3}}, Jobs: 4, Items: 5}},
		PutItem{Name: n, Old: []byte{1}, Time: at + 2},
		PutItem{Name: jobOf(1, 5), New: []byte{3}, Time: at + 3, Kind: job.Cases},
	}
}

func jobAnswer(t testing.TB, m *Machine, c any) JobAnswer {
	t.Helper()
	a, err := BeginJobOp.Answer(m.Apply(1, encode(c)))
	must.Do(t, err)
	return a
}

func TestJobBytesMatchFormat(t *testing.T) {
	t.Parallel()
	m := New(newTable(t), testArena)
	again := keepsBytes(t, m, "jobs.txt", once, slices.Concat(jobCommands(jobOf(1, 1)), pairCommands(jobOf(1, 2), jobOf(1, 3)), putCommands(jobOf(1, 4))))
	if page, _, err := again.Jobs().Page(job.Name(jobOf(1, 1)), 0, 9); err != nil || len(page) != 2 || page[1].Result == nil {
		t.Errorf("the restored page is %v, %v", page, err)
	}
	if work := again.Jobs().Work(job.Duplicates); len(work) != 1 || work[0] != job.Name(jobOf(1, 3)) {
		t.Errorf("the restored comparisons are %v", work)
	}
}

func TestJobStartsOnceEndsWithGallery(t *testing.T) {
	t.Parallel()
	m := New(newTable(t), testArena)
	n := jobOf(1, 1)
	all := jobCommands(n)
	for i, c := range all[:4] {
		if a := jobAnswer(t, m, c); a.Status != Done {
			t.Fatalf("command %d: %+v", i, a)
		}
	}
	if a := jobAnswer(t, m, all[0]); a != (JobAnswer{Status: Replayed, Total: 2, Items: 2, Done: 1, Open: true}) {
		t.Errorf("begin again: %+v", a)
	}
	other := all[0].(BeginJob)
	other.Request[3]++
	if a := jobAnswer(t, m, other); a.Status != Conflict {
		t.Errorf("another request: %+v", a)
	}
	if a := jobAnswer(t, m, OpenJob{Name: jobOf(1, 2)}); a.Status != UnknownJob {
		t.Errorf("an unknown job: %+v", a)
	}
	m.Apply(9, FenceOp.Encode(Fence{Gallery: n.Gallery, Generation: 2}))
	if len(m.Jobs().Work(job.Registrations)) != 0 {
		t.Error("a deleted gallery has work")
	}
	for i, c := range all[:4] {
		if a := jobAnswer(t, m, c); a.Status != StaleGeneration {
			t.Errorf("command %d after the deletion: %+v", i, a)
		}
	}
}

// A captured request that began a comparison is sent again when the next comparison has replaced the first.
func TestReplayReplacesNoNewerComparison(t *testing.T) {
	t.Parallel()
	m := New(newTable(t), testArena)
	first, next := jobOf(1, 2), jobOf(1, 3)
	for i, c := range pairCommands(first, next)[:8] {
		if a := jobAnswer(t, m, c); a.Status != Done {
			t.Fatalf("command %d: %+v", i, a)
		}
	}
	f := func(what string, want Status, change func(*BeginJob)) {
		t.Helper()
		c := pairCommands(first, next)[0].(BeginJob)
		change(&c)
		if a := jobAnswer(t, m, c); a.Status != want || a.Open != (want == Replayed) {
			t.Errorf("%s: %+v, want %v", what, a, want)
		}
	}
	f("a replay", Replayed, func(*BeginJob) {})
	f("another request with its key", Conflict, func(c *BeginJob) { c.Write.Request[0]++ })
	f("its key in another gallery", Conflict, func(c *BeginJob) { c.Name.Gallery.UUID[15]++ })
	if list := m.Jobs().Batches(job.Duplicates); len(list) != 1 || list[0] != job.Name(next) {
		t.Errorf("comparisons %v", list)
	}
	f("a day later", Done, func(c *BeginJob) { c.Time += 25 * 60 * 60 * 1000 })
}

func TestOutdatedJobIsRefusedUnlessBegun(t *testing.T) {
	t.Parallel()
	m := New(newTable(t), testArena)
	f := func(what string, n byte, epoch uint32, want Status) {
		t.Helper()
		c := jobCommands(jobOf(1, n))[0].(BeginJob)
		c.Epoch = epoch
		if a := jobAnswer(t, m, c); a.Status != want {
			t.Errorf("%s: %v, want %v", what, a.Status, want)
		}
	}
	f("before the gallery grew", 1, 1, Done)
	m.Apply(1, WidenOp.Encode(Widen{Gallery: jobOf(1, 1).Gallery, Generation: 1, Epoch: 3}))
	f("the same job again, by the first list", 1, 1, Replayed)
	f("another one by the first list", 2, 1, Outdated)
	f("by the list before", 2, 2, Outdated)
	if _, missing := m.Jobs().Find(job.Name(jobOf(1, 2))); missing == nil {
		t.Error("what was refused is there")
	}
	f("by this list", 2, 3, Done)
	f("by a later one", 3, 4, Done)
	f("by a node that names none", 4, 0, Done)
}

func TestReplicasAgreeOnJobs(t *testing.T) {
	t.Parallel()
	replicasAgree(t, 40, func(random *rand.Rand) (commands [][]byte) {
		time := int64(1_700_000_000_000)
		for range 120 {
			n := jobOf(byte(random.IntN(2)), byte(random.IntN(3)))
			time += random.Int64N(5 * 60_000)
			switch random.IntN(14) {
			case 12, 13:
				put := PutItem{Name: jobOf(byte(random.IntN(2)), 9), Index: uint32(random.IntN(4)), Time: time}
				if put.Kind = job.Cases; random.IntN(2) == 0 {
					put.Name, put.Kind = jobOf(byte(random.IntN(2)), 8), 0
				}
				if random.IntN(2) == 0 {
					put.Old = []byte{byte(1 + random.IntN(2))}
				}
				if random.IntN(3) > 0 {
					put.New = []byte{byte(1 + random.IntN(2))}
				}
				commands = append(commands, PutItemOp.Encode(put))
			case 0:
				n.Generation = uint32(random.IntN(3))
				commands = append(commands, FenceOp.Encode(Fence{Gallery: n.Gallery, Generation: n.Generation}))
			case 6:
				commands = append(commands, WidenOp.Encode(Widen{Gallery: n.Gallery, Generation: n.Generation, Epoch: uint32(random.IntN(4))}))
			case 1:
				commands = append(commands, ExpireJobsOp.Encode(ExpireJobs{Time: time + random.Int64N(2)*40*24*60*60_000}))
			case 2, 3:
				commands = append(commands, AddJobOp.Encode(AddJob{Name: n, First: uint32(random.IntN(3)), Items: [][]byte{{1}}, Time: time}))
			case 4, 5:
				commands = append(commands, FinishJobOp.Encode(FinishJob{Name: n, Results: []job.Result{{Index: uint32(random.IntN(3))}}, Time: time}))
			default:
				all := jobCommands(n)
				all[4] = all[len(all)-1] // BeginJob by an epoch
				commands = append(commands, encode(all[random.IntN(5)]))
			}
		}
		return commands
	})
}
