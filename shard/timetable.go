package shard

import "github.com/tidwall/btree"

// timetable has the times at which entries of a slice expire of themselves. It has nothing for an
// entry without such a time. The nil timetable is empty.
//
//	of      sequence → time      copied with the entries for a snapshot
//	order   time, sequence       finds the next to expire
type timetable struct {
	of    *btree.Map[uint64, int64]
	order *btree.BTreeG[deadline]
}

// deadline is when an entry, named by its sequence, expires, in milliseconds since 1970.
type deadline struct {
	time     int64
	sequence uint64
}

func (t deadline) before(other deadline) bool {
	return t.time < other.time || t.time == other.time && t.sequence < other.sequence
}

func newTimetable() *timetable {
	return &timetable{
		of:    new(btree.Map[uint64, int64]),
		order: btree.NewBTreeGOptions(deadline.before, btree.Options{NoLocks: true}),
	}
}

// at returns when an entry expires, or 0.
func (t *timetable) at(sequence uint64) int64 {
	if t == nil {
		return 0
	}
	time, _ := t.of.Get(sequence)
	return time
}

// all returns when each of the entries expires, or 0. It returns nil if none of them does.
func (t *timetable) all(sequences []uint64) (times []int64) {
	if t == nil {
		return nil
	}
	for i, sequence := range sequences {
		if at := t.at(sequence); at != 0 {
			if times == nil {
				times = make([]int64, len(sequences))
			}
			times[i] = at
		}
	}
	return times
}

func (t *timetable) len() int {
	if t == nil {
		return 0
	}
	return t.of.Len()
}

// remove removes an entry that may have no time.
func (t *timetable) remove(sequence uint64) {
	if t == nil {
		return
	}
	if time, ok := t.of.Delete(sequence); ok {
		t.order.Delete(deadline{time, sequence})
	}
}

// copied returns the times by sequence. Later changes of t don't change them.
func (t *timetable) copied() *timetable {
	if t == nil {
		return nil
	}
	return &timetable{of: t.of.Copy()}
}

// ascend calls yield with the entries from the time and sequence of from on, until yield returns
// false.
func (t *timetable) ascend(from deadline, yield func(deadline) bool) {
	if t != nil {
		t.order.Ascend(from, yield)
	}
}

// expires sets when an active entry expires. Zero, never, needs no memory.
func (sl *slice) expires(sequence uint64, time int64) {
	if time == 0 {
		return
	}
	if sl.times == nil {
		sl.times = newTimetable()
	}
	sl.times.of.Set(sequence, time)
	sl.times.order.Set(deadline{time, sequence})
}

// expirable reports whether a stored event may have this time of expiry, or 0.
func expirable(expires int64, deleted bool) bool { return expires >= 0 && (!deleted || expires == 0) }
