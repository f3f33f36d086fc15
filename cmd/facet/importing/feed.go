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
			row.Err = t.identify(r.gallery, equal)
		}
		if row.Err != nil {
			r.drop(&t)
			r.report.add(t.place, line{row: row, outcome: Failed, reason: row.Err.Error()})
			continue
		}
		rec, done, err := r.earlier(t.key)
		if err != nil {
			return err
		}
		if done && rec.Kind != state.Left {
			r.drop(&t)
			r.before.Add(1)
			l := line{row: row, outcome: outcomes[rec.Kind], subject: rec.Subject, event: rec.Event, quality: rec.Quality, earlier: rec.Earlier}
			if l.reason = "by a job"; l.earlier {
				l.reason = "by an earlier run"
			}
			r.report.add(t.place, l)
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

// identify reads the photo and sets the keys of the row: the hash of gallery, external id
// and photo, and the row's place among equal ones.
func (t *task) identify(gallery uint64, equal map[uint64]uint32) error {
	if err := t.row.CopyTo(t.photo); err != nil {
		return err
	}
	photo := t.photo.Bytes() // a fast hash is enough: rows with equal ones are told apart by their place
	content := sha256.Sum256(fmt.Appendf(nil, "%016x %q %d %016x", gallery, t.row.ExternalID, len(photo), xxhash.Sum64(photo)))
	hash := binary.BigEndian.Uint64(content[:])
	whole := sha256.Sum256(binary.BigEndian.AppendUint32(content[:], equal[hash]))
	equal[hash]++
	t.key, t.person = state.Key(whole[:16]), personOf(t.row)
	return nil
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
