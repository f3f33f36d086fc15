package metafsm

import (
	"bytes"
	"testing"

	"facet/raftfsm/fsmtest"

	"github.com/google/go-cmp/cmp"

	"facet/internal/id"
)

func rekey(t testing.TB, m *Machine, c Rekey) RekeyAnswer {
	t.Helper()
	a, err := RekeyOp.Answer(m.Apply(m.index+1, RekeyOp.Encode(c)))
	if err != nil || a.Status != Done {
		t.Fatalf("rekey: %+v, %v", a, err)
	}
	return a
}

func TestRekeyReplacesSecretsAndMAC(t *testing.T) {
	t.Parallel()
	m := filled(t)
	before := fsmtest.Snapshot(t, m)
	var c Rekey
	for _, s := range m.Secrets() {
		s.New = append([]byte("new "), s.Old...)
		if !s.Application.IsZero() {
			s.KeyMAC = [32]byte{99, s.Application.UUID[1]}
		}
		c.Secrets = append(c.Secrets, s)
	}
	old := m.Applications(tenantA)[0]
	if got := rekey(t, m, c).Changed; got != len(c.Secrets) || got < 3 {
		t.Errorf("changed %d of %d", got, len(c.Secrets))
	}
	if got := rekey(t, m, c).Changed; got != 0 {
		t.Errorf("the same again changed %d", got)
	}
	for _, s := range m.Secrets() {
		if !bytes.HasPrefix(s.Old, []byte("new ")) {
			t.Errorf("left: %+v", s)
		}
	}
	app, found := m.ApplicationByMAC([32]byte{99, old.ID.UUID[1]})
	if _, still := m.ApplicationByMAC(old.KeyMAC); still || !found || app.ID != old.ID {
		t.Errorf("found by the new MAC %t, by the old one %t", found, still)
	}
	app.SealedKey, app.KeyMAC = old.SealedKey, old.KeyMAC
	if diff := cmp.Diff(old, app); diff != "" {
		t.Errorf("something else changed too: %s", diff)
	}
	restored := New()
	if err := restored.Restore(bytes.NewReader(fsmtest.Snapshot(t, m))); err != nil || restored.Digest() != m.Digest() {
		t.Errorf("restore: %v", err)
	}
	if again := New(); again.Restore(bytes.NewReader(before)) != nil || again.Digest() == m.Digest() {
		t.Error("the digest does not tell")
	}
}

func TestRekeySkipsChangedSecrets(t *testing.T) {
	t.Parallel()
	m := filled(t)
	list := []Rekeyed{
		{Gallery: galleryA, Old: []byte("other"), New: []byte("n")},
		{AccessKey: "KEY", Old: []byte("other"), New: []byte("n")},
		{Application: testApplication(1).ID, Old: []byte("other"), New: []byte("n")},
		{Gallery: id.Gallery{UUID: id.UUID{0xb, 2}}, Old: nil, New: []byte("n")}, // on its way out
		{Application: testApplication(2).ID, New: []byte("n")},                   // deleted
		{AccessKey: "NONE", New: []byte("n")},
	}
	if got := rekey(t, m, Rekey{Secrets: list}).Changed; got != 0 {
		t.Errorf("changed %d", got)
	}
}

func TestRetiredKeysSecretsAreRefused(t *testing.T) {
	t.Parallel()
	m := filled(t)
	rekey(t, m, Rekey{KeyCheck: []byte("check"), KeyHead: []byte("head")})
	if c, _ := m.Cluster(); string(c.KeyCheck) != "check" {
		t.Errorf("key check %q", c.KeyCheck)
	}
	f := func(name string, want, got Status) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	creation := func(write, n byte, wrapped, sealed string) Status {
		c := testCreation(write, n)
		c.Gallery.WrappedKey, c.Application.SealedKey = []byte(wrapped), []byte(sealed)
		return status(t, m, c)
	}
	f("gallery", OtherKey, creation(40, 40, "old", "head 1"))
	f("its application", OtherKey, creation(41, 41, "head 1", "old"))
	f("both new", Done, creation(42, 42, "head 1", "head 2"))
	access := func(secret string) Status {
		c := PutAccessKey{AccessKey{ID: "KEY9", Tenant: tenantA, Role: 1, SealedSecret: []byte(secret)}}
		return status(t, m, c)
	}
	f("access key", OtherKey, access("old"))
	f("access key", Done, access("head 3"))
	application := func(write byte, sealed string) Status {
		a := testApplication(write)
		a.SealedKey = []byte(sealed)
		c := CreateApplication{testWrite(write), a}
		return status(t, m, c)
	}
	f("application", OtherKey, application(50, "old"))
	f("application", Done, application(51, "head 4"))
}
