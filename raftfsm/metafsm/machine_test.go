package metafsm

import (
	"bytes"
	"flag"
	"fmt"
	"testing"

	"facet/internal/must"
	"facet/internal/settings"
	"facet/raftfsm"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
	"facet/raftfsm/fsmtest"
	"facet/raftfsm/operation"
)

var _ = flag.Bool("rewrite", false, "write testdata anew")

var (
	tenantA  = id.Tenant{UUID: id.UUID{0xa}}
	galleryA = id.Gallery{UUID: id.UUID{0xb}}
)

func testWrite(n byte) Write {
	return Write{Op: id.Operation{n}, Request: [16]byte{n, 1}, Keyed: n%2 == 1, Time: 1_700_000_000_000 + int64(n)}
}

func testApplication(n byte) Application {
	return Application{
		ID: id.Application{UUID: id.UUID{0xc, n}}, Tenant: tenantA, Gallery: galleryA, KeyMAC: [32]byte{n}, SealedKey: []byte{5, n},
		Application: settings.Application{Name: "app", Description: "d", MinimumQuality: .45, VerifyThreshold: 7000, GuardThreshold: 8000, Guard: true},
	}
}

// encode returns the bytes of a command.
func encode(c any) []byte { return fsmtest.Encode(commands[:], c) }

// script returns one command of each kind. Applied in this order, each is Done.
func script() []any {
	node := id.Node{UUID: id.UUID{0xd}}
	return []any{
		Found{Cluster{ID: id.Cluster{UUID: id.UUID{1}}, Shards: 16, Replicas: 3, Pack: "pack", IDKey: [32]byte{2}, Created: 3}},
		PutNode{Node{ID: node, Member: id.NewMember(node, 1), Name: "one", Joined: 4, Level: Level}},
		PutShards{Previous: 0, Shards: []ShardVoters{{Shard: 1, Voters: []id.Member{"m1", "m2"}}, {Shard: 3, Voters: []id.Member{"m2"}}}},
		CreateTenant{testWrite(1), Tenant{ID: tenantA, Name: "tenant"}},
		PutAccessKey{AccessKey{ID: "KEY", Tenant: tenantA, Role: 1, SealedSecret: []byte{6}}},
		CreateGallery{testWrite(2), Gallery{
			ID: galleryA, Tenant: tenantA, Gallery: settings.Gallery{Name: "gallery", Description: "d", Size: 100}, Shards: 1, Generation: 1,
			WrappedKey: []byte{7}, IDKey: [32]byte{8},
		}, testApplication(1)},
		CreateApplication{testWrite(3), testApplication(2)},
		Grant{Gallery: galleryA, Generation: 1, Shard: 2, Have: 0, Want: 60},
		Grant{Gallery: galleryA, Generation: 1, Shard: 1, Have: 0, Want: 60},
		UpdateGallery{
			Write: testWrite(4), Tenant: tenantA, Gallery: galleryA, Shards: 4,
			Change: settings.ChangeTo(settings.Gallery{Name: "renamed", Size: 200_000}, "name", "description", "size"),
		},
		Settle{Gallery: galleryA, Generation: 1, Epoch: 1},
		UpdateApplication{
			Write: testWrite(5), Tenant: tenantA, Application: testApplication(1).ID,
			Change: settings.ChangeTo(settings.Application{Name: "n", Description: "e", MinimumQuality: .5, VerifyThreshold: 1, GuardThreshold: 2}, settings.Names[settings.Application]()[:6]...),
		},
		DeleteApplication{Write: testWrite(6), Tenant: tenantA, Application: testApplication(2).ID},
		Reclaim{Gallery: galleryA, Generation: 1, Shard: 1, Returned: 10},
		CreateTag{Write: testWrite(7), Gallery: galleryA, Name: "old"},
		CreateTag{Write: testWrite(8), Gallery: galleryA, Name: "kept"},
		RenameTag{Write: testWrite(9), Gallery: galleryA, From: "kept", To: "new"},
		DeleteTag{Write: testWrite(10), Gallery: galleryA, Name: "old"},
		PutAccessKey{AccessKey{ID: "KEY2", Tenant: tenantA, Role: 2, SealedSecret: []byte{6}, Created: 9, State: KeyRevoked}},
		PutAccessKey{AccessKey{ID: "KEY3", Tenant: tenantA, Role: 3, SealedSecret: []byte{6}, Created: 9}},
		DeleteAccessKey{Tenant: tenantA, Key: "KEY3"},
		testCreation(11, 1),
		DeleteGallery{Write: testWrite(12), Tenant: tenantA, Gallery: id.Gallery{UUID: id.UUID{0xb, 1}}},
		ForgetGallery{Gallery: id.Gallery{UUID: id.UUID{0xb, 1}}, Generation: 2},
		testCreation(13, 2),
		DeleteGallery{Write: testWrite(14), Tenant: tenantA, Gallery: id.Gallery{UUID: id.UUID{0xb, 2}}},
		SetNodeState{node, NodeDraining, id.Node{}},
		SetReplicas{5},
		SetSigner{Signer{Public: [32]byte{9}, WrappedSeed: []byte{8}}},
		SetAudit{Tenant: tenantA, Mode: AuditStrict, Days: 400},
		SetAuditKey{Tenant: tenantA, WrappedKey: []byte{8}},
		SetAuditKey{Tenant: id.ClusterLog, WrappedKey: []byte{9}},
		PutAccessKey{AccessKey{
			ID: "KEY4", Tenant: tenantA, Role: 5, SealedSecret: []byte{6}, Created: 9, Holder: "door 3", Ends: 10,
			Galleries: []id.Gallery{galleryA}, Networks: []string{"10.0.0.0/8", "fd00::/8"},
		}},
		NoteKeyUses{[]KeyUse{{"KEY4", 11}, {"KEY2", 11}, {"KEY5", 11}}},
	}
}

// testCreation returns the command that creates the n-th further gallery.
func testCreation(write, n byte) CreateGallery {
	c := CreateGallery{Write: testWrite(write), Application: testApplication(n + 10), Gallery: Gallery{
		ID: id.Gallery{UUID: id.UUID{0xb, n}}, Tenant: tenantA, Gallery: settings.Gallery{Name: fmt.Sprint("gallery ", n), Size: 10}, Shards: 1, Generation: 1,
		WrappedKey: []byte{7, n},
	}}
	return c
}

// status applies a command and returns the first field of its answer.
func status(t testing.TB, m *Machine, c any) Status {
	t.Helper()
	return fsmtest.Status[Status](t, m.Apply(1, encode(c)))
}

// expecting returns a function that compares the status of a command, which a text names.
func expecting(t *testing.T, m *Machine) func(what string, c any, want Status) {
	return func(what string, c any, want Status) {
		t.Helper()
		if got := status(t, m, c); got != want {
			t.Errorf("%s, %T: %v, want %v", what, c, got, want)
		}
	}
}

func filled(t testing.TB) *Machine {
	t.Helper()
	m := New()
	for i, c := range script() {
		if got := fsmtest.Status[Status](t, m.Apply(uint64(i+1), encode(c))); got != Done {
			t.Fatalf("%T: %v", c, got)
		}
	}
	return m
}

// keepsBytes compares commands, answers and the snapshot of m with a file of testdata. again
// gets the snapshot.
func keepsBytes(t *testing.T, m, again *Machine, file string, list []any) (stored []byte) {
	t.Helper()
	return fsmtest.Transcript[*Machine]{File: file, Table: commands[:], Index: fsmtest.From(1)}.Check(t, m, again, list)
}

func TestStoredBytesStayWhatTheyWere(t *testing.T) {
	t.Parallel()
	keepsBytes(t, New(), New(), "formats.txt", script())
}

func TestNodesKeepJoinTime(t *testing.T) {
	t.Parallel()
	m := New()
	put := func(n byte, name string, joined int64) {
		node := id.Node{UUID: id.UUID{n}}
		m.Apply(1, PutNodeOp.Encode(PutNode{Node{ID: node, Member: id.NewMember(node, 1), Name: name, Joined: joined, Level: Level}}))
	}
	put(2, "two", 10)
	put(3, "three", 5)
	put(1, "one", 10)
	put(2, "zwei", 99)
	var got []string
	for _, n := range m.Nodes() {
		got = append(got, fmt.Sprint(n.Name, " ", n.Joined))
	}
	if diff := cmp.Diff([]string{"three 5", "one 10", "zwei 10"}, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

func TestChangedSignalsEachChange(t *testing.T) {
	t.Parallel()
	m := New()
	closed := func(c <-chan struct{}) bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
	for _, c := range script() {
		next := m.Changed()
		if closed(next) {
			t.Fatalf("closed before %T", c)
		}
		m.Apply(1, encode(c))
		if !closed(next) {
			t.Errorf("%T changed records silently", c)
		}
		next = m.Changed()
		m.Apply(1, encode(c))
		if closed(next) {
			t.Errorf("a retry of %T is told as a change", c)
		}
	}
	snap := fsmtest.Snapshot(t, m)
	next := m.Changed()
	m.Apply(1, nil)
	if closed(next) {
		t.Error("an empty command is told as a change")
	}
	must.Do(t, m.Restore(bytes.NewReader(snap)))
	if !closed(next) {
		t.Error("a restore changed records silently")
	}
}

func TestReadersGetCopies(t *testing.T) {
	t.Parallel()
	m := filled(t)
	before := m.Digest()
	g, _ := m.Gallery(galleryA)
	clear(g.WrappedKey)
	a, _ := m.Application(testApplication(1).ID)
	clear(a.SealedKey)
	k, _ := m.AccessKey("KEY")
	clear(k.SealedSecret)
	m.Shards().Shards[0].Voters[0] = "other"
	m.Grants(galleryA)[0].Total = 99
	m.Tags(galleryA)[0].Name = "other"
	clear(m.Deleting())
	clear(m.AccessKeys(tenantA)[0].SealedSecret)
	if m.Digest() != before {
		t.Error("a reader changed the state")
	}
}

func TestVotersAreFoundByShard(t *testing.T) {
	t.Parallel()
	shards := filled(t).Shards()
	for s, want := range map[id.Shard]int{0: 0, 1: 2, 2: 0, 3: 1, 4: 0} {
		if got, ok := shards.Shard(s); len(got.Voters) != want || ok != (want > 0) {
			t.Errorf("shard %d: %v, want %d voters", s, got, want)
		}
	}
}

func TestExcessOperationsAreRefused(t *testing.T) {
	t.Parallel()
	m := newMachine(operation.Limits{Plain: 1, Keyed: 1})
	f := func(n byte, later int64, want Status) {
		t.Helper()
		w := testWrite(n)
		w.Time += later
		c := CreateTenant{w, Tenant{ID: id.Tenant{UUID: id.UUID{n}}, Name: fmt.Sprint(n)}}
		expecting(t, m)(c.Tenant.Name, c, want)
	}
	f(0, 0, Done)
	f(1, 0, Done)
	f(2, 0, OpsFull)
	f(3, 0, OpsFull)
	f(2, 11*60_000, Done)
	f(3, 11*60_000, OpsFull)
}

func TestDamagedSnapshotChangesNothing(t *testing.T) {
	t.Parallel()
	m := New()
	m.Apply(1, encode(script()[0]))
	next := m.Changed()
	fsmtest.CheckDamage(t, m, fsmtest.Snapshot(t, filled(t)))
	if m.Changed() != next {
		t.Error("a refused snapshot is told as a change")
	}
}

func TestUnknownCommandPanicsUnlessSkippable(t *testing.T) {
	t.Parallel()
	fsmtest.CheckUnreadable(t, filled(t), encode(script()[7]))
}

func TestRowsLieAtTheirCodes(t *testing.T) {
	t.Parallel()
	fsmtest.CheckCodes(t, commands[:], "## Codes of meta")
}

func FuzzDecodeInvertsEncode(f *testing.F) { fsmtest.CheckEncoding(f, commands[:], script()) }

func FuzzRestoreFailsOrIsComplete(f *testing.F) {
	empty := func() raftfsm.Machine { return New() }
	fsmtest.CheckRestore(f, empty, magic, fsmtest.Snapshot(f, filled(f)), fsmtest.Snapshot(f, New()))
}
