package shardfsm

import (
	"testing"

	"facet/raftfsm/fsmtest"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
)

var (
	tenantA = id.Tenant{UUID: id.UUID{0xa}}
	tenantB = id.Tenant{UUID: id.UUID{0xb}}
)

func shared(of id.Tenant, n byte, writes uint32) Register {
	c := testRegister(n)
	c.Keyed, c.Share = true, Share{of, writes}
	return c
}

func sharedJob(of id.Tenant, n byte, total uint32) BeginJob {
	c := jobCommands(jobOf(1, n))[0].(BeginJob)
	c.Total, c.Share = total, JobShare{of, 2, 10}
	return c
}

func TestShareBytesMatchFormat(t *testing.T) {
	t.Parallel()
	m := New(newTable(t), testArena)
	unregistered := testUnregister(1)
	unregistered.Share = Share{tenantA, 3}
	again := keepsBytes(t, m, "shares.txt", fsmtest.From(1), []any{testGrant, shared(tenantA, 1, 3), unregistered, sharedJob(tenantA, 1, 2), sharedJob(tenantB, 2, 11)})
	if diff := cmp.Diff(map[id.Tenant]Taken{tenantA: {Writes: 1, Jobs: 1, Items: 2}}, again.Taken()); diff != "" {
		t.Errorf("taken after a restart (-want +got):\n%s", diff)
	}
}

func TestUsedUpShareRefusesItsTenant(t *testing.T) {
	t.Parallel()
	m := New(newTable(t), testArena)
	m.Apply(1, GrantOp.Encode(Grant{Gallery: testGallery, Generation: 1, Total: 100}))
	enrol := func(what string, c Register, want Status) {
		t.Helper()
		if got := register(t, m, c).Status; got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	begin := func(what string, c BeginJob, want Status) {
		t.Helper()
		if got := jobAnswer(t, m, c).Status; got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	enrol("a write", shared(tenantA, 1, 2), Done)
	enrol("a second one", shared(tenantA, 2, 2), Done)
	enrol("a third one", shared(tenantA, 3, 2), OverWrites)
	enrol("the first one again", shared(tenantA, 1, 2), Replayed)
	plain := shared(tenantA, 3, 2)
	plain.Keyed = false
	enrol("one without a key", plain, Done)
	enrol("another tenant's", shared(tenantB, 4, 2), Done)
	enrol("one of older software", testRegister(5), Done)
	enrol("one more, when the quota was raised", shared(tenantA, 6, 3), Done)
	late := shared(tenantA, 7, 2)
	late.Time += 25 * 60 * 60 * 1000
	enrol("one, a day later", late, Done)

	begin("a job", sharedJob(tenantA, 1, 4), Done)
	begin("one with too many items", sharedJob(tenantA, 2, 7), OverJobItems)
	begin("one that fits", sharedJob(tenantA, 2, 6), Done)
	begin("a third one", sharedJob(tenantA, 3, 1), OverJobs)
	begin("the first one again", sharedJob(tenantA, 1, 4), Replayed)
	begin("another tenant's", sharedJob(tenantB, 4, 10), Done)
	m.Apply(9, ExpireJobsOp.Encode(ExpireJobs{Time: late.Time + 11*60_000})) // none was ever opened
	begin("one, when they have expired", sharedJob(tenantA, 5, 10), Done)
}
