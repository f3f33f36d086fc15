package importing

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"facet/cmd/facet/importing/list"
	"facet/cmd/facet/importing/state"
)

// feed hands the rows out in their order. Rows that an earlier run has done go into the
// report at once.
func (r *run) feed(ctx context.Context) error {
	place := 0
	equal := map[uint64]uint32{} // how many rows so far have this content, by its hash
	for row, err := range r.Source.Rows() {
		if err != nil {
			return err
		}
		select {
		case r.report.slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		t := task{place: place, row: row}
		place++
		if row.Err == nil {
			t.photo = r.photos.get()
			row.Err = t.identify(r.gallery, r.Tags, equal)
		}
		if row.Err != nil {
			r.drop(&t)
			r.report.add(t.place, line{row: row, outcome: Failed, reason: row.Err.Error()})
			continue
		}
		if err := r.recall(&t); err != nil {
			return err
		}
		if t.was != nil && !r.doubts(&t) {
			r.drop(&t)
			r.report.add(t.place, r.wasIn(*t.was, row))
			continue
		}
		if !r.queue(&t) {
			if r.gate.enter(ctx) != nil {
				return nil
			}
			r.work.Go(func() { r.serve(ctx, t) })
		}
	}
	return nil
}

// recall sets what an earlier run, or a job, has done with the row.
func (r *run) recall(t *task) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, done, err := r.state.Find(t.key)
	if done && rec.Kind != state.Left {
		t.was = &rec
	}
	t.last = r.state.Last(t.key)
	return err
}

// wasIn returns the line of a row that an earlier run, or a job, has brought in.
func (r *run) wasIn(rec state.Record, row list.Row) line {
	r.before.Add(1)
	l := line{row: row, outcome: outcomes[rec.Kind], subject: rec.Subject, event: rec.Event, quality: rec.Quality, earlier: rec.Earlier}
	if l.reason = "by a job"; l.earlier {
		l.reason = "by an earlier run " + when(rec)
	}
	return l
}

// when returns the time of a record, for people.
func when(rec state.Record) string {
	return "on " + rec.At.UTC().Format("2006-01-02 15:04:05") + " UTC"
}

// identify reads the photo and sets the keys of the row: the hash of gallery, external id
// and photo, and the row's place among equal ones. tags are those of all rows.
func (t *task) identify(gallery uint64, tags []string, equal map[uint64]uint32) error {
	if err := t.row.CopyTo(t.photo); err != nil {
		return err
	}
	photo := t.photo.Bytes() // a fast hash is enough: rows with equal ones are told apart by their place
	content := sha256.Sum256(fmt.Appendf(nil, "%016x %q %d %016x", gallery, t.row.ExternalID, len(photo), xxhash.Sum64(photo)))
	hash := binary.BigEndian.Uint64(content[:])
	whole := sha256.Sum256(binary.BigEndian.AppendUint32(content[:], equal[hash]))
	equal[hash]++
	t.key, t.person, t.file = state.Key(whole[:16]), personOf(t.row), fileOf(t.row)
	t.details = xxhash.Sum64(fmt.Appendf(nil, "%q %d %q", t.tags(tags), t.row.Expires.UnixMilli(), t.row.UserData))
	return nil
}

// fileOf returns the hash of a row's external id and file name.
func fileOf(row list.Row) uint64 {
	return xxhash.Sum64(fmt.Appendf(nil, "%q %q", row.ExternalID, row.File))
}

func personOf(row list.Row) state.Person {
	if row.ExternalID == "" {
		return 0
	}
	hash := sha256.Sum256([]byte(row.ExternalID))
	return state.Person(binary.BigEndian.Uint64(hash[:]) | 1) // 0 is none
}

// drop releases the memory of a row's photo.
func (r *run) drop(t *task) {
	if t.photo != nil {
		r.photos.put(t.photo)
		t.photo = nil
	}
}

// queue puts a row behind one of the same person that is under way. It reports whether
// there is one. The row then drops its photo: many may wait.
func (r *run) queue(t *task) bool {
	if t.person == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting, busy := r.waiting[t.person]
	if busy {
		r.drop(t)
		r.waiting[t.person] = append(waiting, *t)
	} else {
		r.waiting[t.person] = nil
	}
	return busy
}

// next returns the next row of a person, if one waits.
func (r *run) next(p state.Person) (t task, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiting := r.waiting[p]
	if len(waiting) == 0 {
		delete(r.waiting, p)
		return t, false
	}
	r.waiting[p] = waiting[1:]
	return waiting[0], true
}

// serve carries out a row, and those of the same person that came meanwhile. It leaves
// the gate that the feeder entered.
func (r *run) serve(ctx context.Context, t task) {
	defer r.gate.leave()
	r.report.add(t.place, r.enrol(r.requests, t))
	for t.person != 0 {
		next, ok := r.next(t.person)
		if !ok {
			return
		}
		t = next
		if ctx.Err() != nil { // the import ends: the row is not begun
			r.report.add(t.place, line{row: t.row, outcome: Failed, reason: "interrupted: the same command goes on"})
			continue
		}
		r.report.add(t.place, r.enrol(r.requests, t))
	}
}

// earlier returns the record of a row that is done.
func (r *run) earlier(k state.Key) (state.Record, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.Find(k)
}

// has reports whether the import made or changed a person.
func (r *run) has(p state.Person) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.Has(p)
}

// keep keeps what became of a row.
func (r *run) keep(rec state.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.verdicts, rec.Person) // the state knows the subject
	return r.state.Add(rec)
}

func (r *run) setVerdict(p state.Person, v verdict) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.verdicts[p] = v
}

// verdictOf returns what is known of a person.
func (r *run) verdictOf(p state.Person) (v verdict, err error) {
	if p == 0 {
		return v, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if v, ok := r.verdicts[p]; ok {
		return v, nil
	}
	v.subject, v.ours, err = r.state.Subject(p)
	return v, err
}
