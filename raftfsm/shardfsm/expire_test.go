package shardfsm

import (
	"reflect"
	"testing"

	"facet/raftfsm/fsmtest"

	"facet/shard"
)

// expiring returns a registration whose event expires.
func expiring(n byte, expires int64) Register {
	c := testRegister(n)
	c.Expires = expires
	return c
}

// expire returns an Expire of the events of registrations.
func expire(time, updated int64, of ...Register) Expire {
	s := ExpireSlice{Gallery: testGallery, Generation: 1, Updated: updated}
	for _, r := range of {
		s.Events = append(s.Events, shard.Expired{Subject: r.Subject, Event: r.Event})
	}
	return Expire{Time: time, Slices: []ExpireSlice{s}}
}

func TestExpireBytesMatchFormat(t *testing.T) {
	t.Parallel()
	m := New(newTable(t), testArena)
	const soon, late = 1_700_000_060_000, 1_800_000_000_000
	a, b, pending := expiring(1, soon), expiring(2, late), expiring(3, late)
	pending.Pending = true
	replace := ReplaceEvent{EventWrite: b.EventWrite, Sealed: []byte{9}, Revision: 1, Expires: late + 1}
	replace.Op[15]++
	forever := replace
	forever.Op[15], forever.Expires, forever.NoExpiry, forever.Revision = 7, 0, true, 2
	keepsBytes(t, m, "expiry.txt", fsmtest.From(1), []any{
		testGrant, a, b, pending, replace, expire(soon, 0, a), AddEvent{expiring(4, late)}, forever, expire(soon+1, soon-RetentionMillisMin, b),
	})
}

// A leader whose clock was a year ahead moves the clock of a shard, for good. Events of their
// own time still wait for a proposer's right clock.
func TestShardClockAheadExpiresNothing(t *testing.T) {
	t.Parallel()
	m := New(newTable(t), testArena)
	m.Apply(1, GrantOp.Encode(testGrant))
	const now, year = int64(1_700_000_000_000), int64(365 * 24 * 3_600_000)
	ahead, a := testRegister(1), expiring(2, now+60_000)
	ahead.Time = now + year
	register(t, m, ahead)
	register(t, m, a)
	f := func(c Expire, want uint32) {
		t.Helper()
		got, err := ExpireOp.Answer(m.Apply(9, ExpireOp.Encode(c)))
		if err != nil || !reflect.DeepEqual(got, ExpireAnswer{Done, want, []uint32{want}}) {
			t.Errorf("%+v, %v, want %d", got, err, want)
		}
	}
	f(expire(now, 0, a, ahead), 0)
	f(expire(now+60_000, now+year, a, ahead), 1) // a retention of less than nothing
}
