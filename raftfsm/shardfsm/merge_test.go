package shardfsm

import (
	"testing"

	"facet/raftfsm/fsmtest"

	"facet/internal/id"
	"facet/shard"
)

func TestMergeBytesMatchFormat(t *testing.T) {
	t.Parallel()
	m := filled(t)
	begin := BeginMerge{
		EventWrite: EventWrite{Gallery: testGallery, Generation: 1, Op: id.Operation{60}, Request: [16]byte{6}, Subject: testSubject(0), Time: testTime},
		Target:     testSubject(9),
	}
	other := testAddEvent(2, 21)
	other.Source = testSubject(8)
	again := keepsBytes(t, m, "merges.txt", fsmtest.From(30), []any{
		begin, other,
		EndMerge{Gallery: testGallery, Generation: 1, Source: testSubject(0), Time: testTime, Faces: []shard.FaceID{{Event: testEvent(0), Revision: 7}}},
		EndMerge{Gallery: testGallery, Generation: 1, Source: testSubject(0), Time: testTime, Faces: []shard.FaceID{{Event: testEvent(0)}}, Copied: 77},
		begin, // Replayed
	})
	if got := again.Merges().Copied(); len(got) != 1 || got[testSubject(9).Shard()] != 77 {
		t.Errorf("after a restart copies lie at %v", got)
	}
	if got, ok := again.Merges().Of(testSubject(0)); !ok || got.Ended == 0 || !again.Merges().Receives(testSubject(2)) {
		t.Errorf("after a restart: %+v", got)
	}
	for _, c := range []any{StopReceiving{Target: testSubject(2), Source: testSubject(8)}, ForgetMerge{Source: testSubject(0)}} {
		again.Apply(40, encode(c))
	}
	if got := again.Merges().List(); len(got) != 0 || again.Merges().Receives(testSubject(2)) {
		t.Errorf("after the end: %+v", got)
	}
}
