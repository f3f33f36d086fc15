package importing

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"facet.internal/client"
	"facet/cmd/facet/importing/list"
	"facet/cmd/facet/importing/state"
	"facet/internal/id"
)

// Known is the treatment of rows whose external id the gallery had before the import.
type Known string

// What may happen.
const (
	Skip    Known = "skip"    // nothing
	Replace Known = "replace" // the first photo replaces the oldest event, further ones are added
	Add     Known = "add"     // each photo is another event
)

// askAfter is after how many known persons in a row the service is asked for the next one
// before it gets the photo.
const askAfter = 100

// task is one row on its way.
type task struct {
	place  int // among the rows, from 0
	row    list.Row
	photo  *bytes.Buffer // nil: not read yet
	key    state.Key
	person state.Person

	details, file uint64        // as in the state
	last          uint32        // number of the newest record of the row, plus 1
	was           *state.Record // what an earlier run or a job has done, nil for nothing
	replaces      uint32        // number of the record whose event the row replaces, plus 1
}

// verdict is the state of a person after earlier rows.
type verdict struct {
	known   bool // all rows are skipped
	ours    bool // the import made or changed the subject
	subject id.UUID
	open    int // number of a row whose outcome is unknown; later ones would come before it
}

// enrol carries out one row.
func (r *run) enrol(ctx context.Context, t task) line {
	l, err := r.decide(ctx, &t)
	r.drop(&t)
	l.row = t.row
	if err == nil {
		return l
	}
	l.outcome = Failed
	if hopeless(err) {
		r.refuse(err)
	}
	l.reason = r.Words(err).Error()
	return l
}

// decide makes the subject, or does what is told for a known one.
func (r *run) decide(ctx context.Context, t *task) (line, error) {
	if err := r.refused(); err != nil {
		return line{}, fmt.Errorf("not tried: %w", err)
	}
	if l, done, err := r.correct(ctx, t); done || err != nil {
		return l, err
	}
	v, err := r.verdictOf(t.person)
	if err != nil {
		return line{}, err
	}
	switch {
	case v.open != 0:
		return line{}, fmt.Errorf("the outcome of row %d, of the same person, is not known yet: the same command goes on", v.open)
	case v.known:
		return skipped(v.subject), nil
	}
	p, err := r.photoOf(t)
	if err != nil {
		return line{}, err
	}
	if v.ours {
		l, err := r.change(ctx, t, v.subject, p, Added)
		if !errors.Is(err, client.ErrNotFound) { // else the person was removed after an earlier run
			return l, err
		}
	}
	if t.person == 0 {
		return r.register(ctx, t, p)
	}
	l, err := r.tried(ctx, t, p)
	if isOpen(err) {
		r.setVerdict(t.person, verdict{open: t.row.Number})
	}
	return l, err
}

// photoOf reads the photo again if it was dropped, and returns what is registered of the row.
func (r *run) photoOf(t *task) (client.Photo, error) {
	if t.photo == nil {
		t.photo = r.photos.get()
		if err := t.row.CopyTo(t.photo); err != nil {
			return client.Photo{}, err
		}
	}
	return t.registration(r.Tags), nil
}

// tried is first. Until the service has shown that it knows external ids, one row after the
// other is carried out: an older service ignores them.
func (r *run) tried(ctx context.Context, t *task, p client.Photo) (line, error) {
	if r.shown.Load() {
		return r.first(ctx, t, p)
	}
	r.trial.Lock()
	defer r.trial.Unlock()
	if r.shown.Load() {
		return r.first(ctx, t, p)
	}
	if _, _, err := r.subjectOf(ctx, t); err != nil {
		return line{}, err
	}
	l, err := r.first(ctx, t, p)
	if err != nil {
		return l, err
	}
	_, found, err := r.subjectOf(ctx, t)
	if err == nil && !found {
		err = errNoExternalIDs
	}
	r.shown.Store(err == nil)
	return l, err
}

// first carries out the first row of a person. After many known ones it asks before it
// sends the photo. Not earlier: the newest persons of an import whose machine lost power
// are known, but the state does not have them; the Idempotency-Key tells.
func (r *run) first(ctx context.Context, t *task, p client.Photo) (line, error) {
	if r.knownInRow.Load() >= askAfter && mayChange(r.role) {
		if l, known, err := r.known(ctx, t, p); known || err != nil {
			return l, err
		}
	}
	l, err := r.register(ctx, t, p)
	if !errors.Is(err, client.ErrDuplicate) {
		r.knownInRow.Store(0)
		return l, err
	}
	if !mayChange(r.role) { // it can't ask
		if subject, ok := holder(err); ok {
			return skipped(subject), nil
		}
		return l, err
	}
	if l, known, err2 := r.known(ctx, t, p); known || err2 != nil {
		r.knownInRow.Add(1)
		return l, err2
	}
	return l, err // the application's guard knows the face
}

// holder returns the subject that has the external id, as the refusal names it. ok is false for a
// refusal by the application's guard.
func holder(refusal error) (subject id.UUID, ok bool) {
	e, _ := errors.AsType[*client.Error](refusal)
	_, text, ok := strings.Cut(e.Message, "externalId: ")
	subject, err := id.Parse(strings.TrimSuffix(text, "."))
	return subject, ok && err == nil
}

// errNoExternalIDs is returned when the service ignores external ids.
var errNoExternalIDs = errors.New("the service knows no external ids: upgrade all of its nodes, or leave the column out")

// subjectOf returns the id of the subject with the row's external id. ok is false if there
// is none.
func (r *run) subjectOf(ctx context.Context, t *task) (subject id.UUID, ok bool, err error) {
	got, err := r.entries(ctx, t.row.ExternalID)
	if err != nil || len(got.Subjects) == 0 {
		return subject, false, err
	}
	if got.Subjects[0].ExternalID != t.row.ExternalID { // an older service ignores the query
		return subject, false, errNoExternalIDs
	}
	if subject, err = id.Parse(got.Subjects[0].ID); err != nil {
		return subject, false, fmt.Errorf("read the subject's id: %w", err)
	}
	return subject, true, nil
}

// entries returns the active events of the subject with an external id.
func (r *run) entries(ctx context.Context, externalID string) (got client.SubjectList, err error) {
	err = r.insist(ctx, func(ctx context.Context) (err error) {
		got, err = r.client.SubjectsWith(ctx, externalID)
		return err
	})
	return got, err
}

// known does what is told for a person whom the gallery knows. known is false for others.
func (r *run) known(ctx context.Context, t *task, p client.Photo) (l line, known bool, err error) {
	subject, known, err := r.subjectOf(ctx, t)
	if !known || err != nil {
		return l, false, err
	}
	switch r.Known {
	case Replace:
		l, err = r.change(ctx, t, subject, p, Replaced)
	case Add:
		l, err = r.change(ctx, t, subject, p, Added)
	default:
		r.setVerdict(t.person, verdict{known: true, subject: subject})
		l = skipped(subject)
	}
	return l, true, err
}

func skipped(subject id.UUID) line {
	return line{outcome: Skipped, subject: subject, reason: "the gallery knew this external id before: --known replace or add brings the photo in"}
}

// register makes a subject.
func (r *run) register(ctx context.Context, t *task, p client.Photo) (line, error) {
	return r.write(ctx, t, Registered, func(ctx context.Context) (client.Registered, error) { return r.client.Register(ctx, p) })
}

// change replaces the oldest event of a subject, or adds one.
func (r *run) change(ctx context.Context, t *task, subject id.UUID, p client.Photo, o Outcome) (line, error) {
	p.ExternalID, p.UserData = nil, nil // the subject keeps its own
	return r.write(ctx, t, o, func(ctx context.Context) (client.Registered, error) {
		if o == Replaced {
			return r.client.Update(ctx, subject.String(), p)
		}
		return r.client.RegisterEvent(ctx, subject.String(), p)
	})
}

// write sends a write under a key of the run and the row, and keeps its outcome in the state.
func (r *run) write(ctx context.Context, t *task, o Outcome, send func(context.Context) (client.Registered, error)) (line, error) {
	var got client.Registered
	key := sha256.Sum256(fmt.Appendf(nil, "%x %x %x %d", r.state.Run, t.key, t.details, t.last))
	keyed := client.WithIdempotencyKey(ctx, "import-"+hex.EncodeToString(key[:16]))
	err := r.insist(keyed, func(ctx context.Context) (err error) {
		got, err = send(ctx)
		return err
	})
	if err != nil {
		return line{}, err
	}
	r.gate.answered()
	rec := t.record(kinds[o])
	rec.Quality = float64(got.Attributes.FaceQualityScore)
	var err1, err2 error
	rec.Subject, err1 = id.Parse(got.ID)
	rec.Event, err2 = id.Parse(got.EventID)
	if err := errors.Join(err1, err2); err != nil {
		return line{}, fmt.Errorf("read the answer's ids: %w", err)
	}
	if err := r.keep(rec); err != nil {
		return line{}, err
	}
	return line{outcome: o, subject: rec.Subject, event: rec.Event, quality: rec.Quality}, nil
}

// record returns what the state keeps of the row, without ids and quality.
func (t *task) record(k state.Kind) state.Record {
	return state.Record{Key: t.key, Person: t.person, Kind: k, Details: t.details, File: t.file, At: time.Now(), Replaces: t.replaces}
}

var (
	kinds    = map[Outcome]state.Kind{Registered: state.Registered, Added: state.Added, Replaced: state.Replaced}
	outcomes = map[state.Kind]Outcome{state.Registered: Registered, state.Added: Added, state.Replaced: Replaced}
)

// registration returns what is registered of the row, whose photo has been read. all are the tags
// of all rows.
func (t *task) registration(all []string) client.Photo {
	p := client.Photo{Image: t.photo.Bytes(), Tags: t.tags(all), UserData: json.RawMessage(t.row.UserData), Expires: t.row.Expires}
	if t.row.ExternalID != "" {
		p.ExternalID = &t.row.ExternalID
	}
	return p
}

// tags returns the row's tags and those of all rows.
func (t *task) tags(all []string) (tags []string) {
	seen := map[string]bool{}
	for _, list := range [][]string{t.row.Tags, all} {
		for _, tag := range list {
			if !seen[tag] {
				seen[tag] = true
				tags = append(tags, tag)
			}
		}
	}
	return tags
}
