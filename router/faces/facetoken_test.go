package faces

import (
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"facet/engine"
	"facet/internal/id"
	"facet/internal/must"
	"facet/shard/seal"
)

// newMaster returns a master whose secrets have one byte repeated.
func newMaster(t testing.TB, secrets ...byte) *seal.Master {
	t.Helper()
	var ring [][]byte
	for _, b := range secrets {
		ring = append(ring, slices.Repeat([]byte{b}, seal.KeyBytes))
	}
	m, err := seal.NewMaster(ring[0], ring[1:]...)
	must.Do(t, err)
	return m
}

func newFaceTokens(t testing.TB, secrets ...byte) *faceTokens {
	t.Helper()
	return &faceTokens{
		newMaster(t, secrets...),
		id.Cluster{UUID: id.UUID{1}},
		[8]byte{2},
		id.Tenant{UUID: id.UUID{3}},
		time.Unix(1_700_000_000, 0),
		map[int64][]*seal.Key{},
	}
}

func TestFaceTokenOpensOnlyWhereItBelongs(t *testing.T) {
	t.Parallel()
	face := engine.Template{.5, -.5, .5, .5}
	text := newFaceTokens(t, 1).seal(face)
	f := func(what string, want error, change func(*faceTokens)) {
		t.Helper()
		other := newFaceTokens(t, 1)
		change(other)
		switch got, err := other.open(text); {
		case err != want: //nolint:errorlint // the very value is looked up in a map
			t.Errorf("%s: %v, want %v", what, err, want)
		case err == nil && !slices.Equal(got, face):
			t.Errorf("%s: got %v", what, got)
		}
	}
	f("another node", nil, func(*faceTokens) {})
	f("just before its end", nil, func(o *faceTokens) { o.now = o.now.Add(faceTokenLife - time.Millisecond) })
	f("at its end", errFaceTokenExpired, func(o *faceTokens) { o.now = o.now.Add(faceTokenLife) })
	f("a year later", errFaceTokenExpired, func(o *faceTokens) { o.now = o.now.AddDate(1, 0, 0) })
	f("a node whose clock is slow", nil, func(o *faceTokens) { o.now = o.now.Add(-faceTokenLife) })
	f("a day before", errFaceToken, func(o *faceTokens) { o.now = o.now.AddDate(0, 0, -1) })
	f("another tenant", errFaceToken, func(o *faceTokens) { o.tenant.UUID[15]++ })
	f("another tenant, later", errFaceToken, func(o *faceTokens) { o.tenant.UUID[15]++; o.now = o.now.Add(faceTokenLife) })
	f("another cluster", errFaceToken, func(o *faceTokens) { o.cluster.UUID[15]++ })
	f("another pack", errFaceTokenPack, func(o *faceTokens) { o.pack[7]++ })
	f("another key of the cluster", errFaceToken, func(o *faceTokens) { o.master = newMaster(t, 2) })
	f("while the key is rotated", nil, func(o *faceTokens) { o.master = newMaster(t, 2, 1) })
}

func TestChangedFaceTokenIsRefused(t *testing.T) {
	t.Parallel()
	tokens := newFaceTokens(t, 1)
	text := tokens.seal(engine.Template{.6, .8})
	raw, err := base64.RawURLEncoding.DecodeString(text)
	must.Do(t, err)
	f := func(what, changed string) {
		t.Helper()
		if got, err := tokens.open(changed); err == nil {
			t.Errorf("%s: opened as %v", what, got)
		}
	}
	for i := range raw {
		other := slices.Clone(raw)
		other[i] ^= 1
		f("a changed byte", base64.RawURLEncoding.EncodeToString(other))
		f("a shorter one", base64.RawURLEncoding.EncodeToString(raw[:i]))
	}
	f("a longer one", text+"AAAA")
	f("with padding", text+"=")
	f("no base64", "*"+text[1:])
	if again := tokens.seal(engine.Template{.6, .8}); again == text {
		t.Error("two seals have one nonce")
	}
}

// Each worker of the fuzzer seals another token of this face.
func FuzzOpenFaceToken(f *testing.F) {
	tokens, face := newFaceTokens(f, 1), engine.Template{.6, .8}
	f.Add(tokens.seal(face))
	f.Add("")
	f.Add(base64.RawURLEncoding.EncodeToString(make([]byte, faceTokenHead+seal.Overhead+4)))
	f.Fuzz(func(t *testing.T, text string) {
		clear(tokens.keys)
		if got, err := tokens.open(text); err == nil && !slices.Equal(got, face) {
			t.Errorf("%q was opened as %v", text, got)
		}
	})
}
