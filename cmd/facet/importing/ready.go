package importing

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sync/errgroup"

	"facet.internal/client"
	"facet/cmd/facet/importing/list"
	"facet/cmd/facet/importing/state"
)

// askAtOnce is how many persons are asked for at once before the first photo.
const askAtOnce = 16

// look holds what one pass over the rows found before the first photo is sent.
type look struct {
	rows     int
	good     int      // rows that can be used
	nameless int      // of them, those without an external id
	first    list.Row // the first with an external id
	waiting  int      // of the good ones, those that are not in
	// files are those of persons whom the import has brought in, and others counts the rows of these
	// persons with other files.
	files  map[uint64]bool
	others map[state.Person]int
}

// lookAt reads the source once. s may be nil.
func lookAt(ctx context.Context, source *list.Source, s *state.State) (l look, err error) {
	l.files, l.others = map[uint64]bool{}, map[state.Person]int{}
	for row, err := range source.Rows() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return l, err
		}
		l.rows++
		if row.Err != nil {
			continue
		}
		l.good++
		if row.ExternalID == "" {
			l.nameless++
		} else if l.first.ExternalID == "" {
			l.first = row
		}
		file := fileOf(row)
		p := personOf(row)
		ours := s != nil && s.Has(p)
		if ours {
			l.files[file] = true
		}
		if s == nil || !s.HasFile(file) {
			l.waiting++
			if ours {
				l.others[p]++
			}
		}
	}
	if l.rows == 0 {
		return l, errors.New("there is no row and no photo to import")
	}
	return l, nil
}

// prepare does what comes before the first photo. It finds out whether the key may do what the
// list asks for, and whether the gallery has room, and begins the report.
func (r *run) prepare(ctx context.Context) (err error) {
	if r.look, err = lookAt(ctx, r.Source, r.state); err != nil {
		return err
	}
	me, err := whoami(ctx, &r.sender, r.client)
	if err == nil {
		r.role = me.Role
		r.shown.Store(r.role != "") // who knows that knows external ids
		err = r.mayImport(ctx)
	}
	if err == nil && me.Gallery != nil {
		err = r.room(ctx, *me.Gallery)
	}
	if ctx.Err() != nil {
		return ErrInterrupted
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(r.Report); err == nil && r.state.New && r.look.nameless > 0 {
		fmt.Fprintf(r.Out, "%s is of an earlier import, whose state %s is gone: all rows without an external id are registered again (%d)\n",
			r.Report, r.Report+stateSuffix, r.look.nameless)
	}
	r.progress = newProgress(r.Out, r.Terminal, r.look.rows)
	r.report, err = createReport(r.Report)
	return err
}

// whoami asks what the access key may do. An older service does not say: the role is empty then.
func whoami(ctx context.Context, s *sender, c *client.Client) (me client.Whoami, err error) {
	err = s.insist(ctx, func(ctx context.Context) (err error) {
		me, err = client.WhoamiOf(ctx, c)
		return err
	})
	if errors.Is(err, client.ErrNotFound) {
		return client.Whoami{}, nil
	}
	return me, err
}

// mayChange reports whether a role may read a gallery and change its subjects. The role of an
// older service is empty, and its refusals tell.
func mayChange(role string) bool { return role == "" || role == "admin" || role == "biometric" }

const otherKey = "use a key with the role biometric or admin"

// checkRole returns an error for a role that may not check a list.
func checkRole(role string) error {
	if mayChange(role) {
		return nil
	}
	return fmt.Errorf("--check compares the photos with the enrolled ones, which the role of this access key, %s, may not: %s", role, otherKey)
}

// mayImport returns an error if the role may not do all that the list asks for.
func (r *run) mayImport(ctx context.Context) error {
	switch {
	case mayChange(r.role):
		return nil
	case r.role != "enrol-only":
		return fmt.Errorf("this access key has the role %s, which registers nobody: %s, or enrol-only if all persons are new", r.role, otherKey)
	case r.Bucket != "":
		return fmt.Errorf("--bucket reads the gallery's tags, which the role of this access key, %s, may not: %s, or leave --bucket out", r.role, otherKey)
	case r.Known != Skip && r.look.first.ExternalID != "":
		return fmt.Errorf("row %d, person %q: if the gallery knows the person, --known %s changes it, and the role of this access key, %s, may only register new ones: %s, or leave --known out",
			r.look.first.Number, r.look.first.ExternalID, r.Known, r.role, otherKey)
	}
	first := map[state.Person]int{} // numbers of rows
	for row, err := range r.Source.Rows() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		p := personOf(row)
		if row.Err != nil || p == 0 {
			continue
		}
		if before, ok := first[p]; ok {
			return fmt.Errorf("rows %d and %d are photos of one person, %q, and the role of this access key, %s, may add no photo to a person: %s, or leave one row for each person",
				before, row.Number, row.ExternalID, r.role, otherKey)
		}
		first[p] = row.Number
	}
	return nil
}

// room returns an error if the gallery has fewer places than the rows need, or grows it.
func (r *run) room(ctx context.Context, g client.GalleryRoom) (err error) {
	need, free := r.look.waiting, g.Size-g.Count
	for p, n := range r.look.others { // a row that takes the place of one that has left the list needs none
		records, err := r.state.Former(p)
		if err != nil {
			return err
		}
		for _, rec := range records {
			if n > 0 && r.Known != Add && !r.look.files[rec.File] {
				n--
				need--
			}
		}
	}
	named := r.look.first.ExternalID != "" && g.Count > 0 && r.Known != Add
	if need > free && named && mayChange(r.role) {
		if need, err = r.unknown(ctx, need, free); err != nil {
			return err
		}
	}
	switch {
	case need <= free:
		return nil
	case r.Grow:
		return r.grow(ctx, g, g.Count+need)
	case named && !mayChange(r.role) && r.look.nameless <= free:
		fmt.Fprintln(r.Out, lacks(r.Config, g, need)+". Persons whom the gallery knows need none; this access key may not look them up")
		return nil
	}
	return errors.New(lacks(r.Config, g, need))
}

// lacks says how many places are missing, and how to make them.
func lacks(cfg Config, g client.GalleryRoom, need int) string {
	free := g.Size - g.Count
	return fmt.Sprintf("the gallery %q lacks %d of the %d places that the rows need: add them with facet gallery grow %q %d%s, or import with --grow",
		g.Name, need-free, need, g.Name, g.Count+need, cfg.Where)
}

// unknown asks for the persons of the rows, and returns need without the rows of those whom the
// gallery knows. It ends early once need is at most enough.
func (r *run) unknown(ctx context.Context, need, enough int) (int, error) {
	fmt.Fprintf(r.Out, "the rows may need %d places, and the gallery has %d left: asking which persons it knows\n", need, enough)
	rows := map[state.Person]int{} // that need no place if the person is known
	for row, err := range r.Source.Rows() {
		if p := personOf(row); err == nil && row.Err == nil && p != 0 && !r.state.Has(p) && (r.Known != Replace || rows[p] == 0) {
			rows[p]++
		}
	}
	var mu sync.Mutex // guards need
	var asked errgroup.Group
	asked.SetLimit(askAtOnce)
	for row, err := range r.Source.Rows() {
		mu.Lock()
		done := need <= enough
		mu.Unlock()
		if err != nil || ctx.Err() != nil || done {
			break
		}
		p := personOf(row)
		n := rows[p]
		if n == 0 {
			continue
		}
		delete(rows, p)
		asked.Go(func() error {
			_, known, err := r.subjectOf(ctx, &task{row: row})
			if known {
				mu.Lock()
				defer mu.Unlock()
				need -= n
			}
			return err
		})
	}
	return need, asked.Wait()
}

// grow raises the size of the gallery.
func (r *run) grow(ctx context.Context, g client.GalleryRoom, size int) error {
	if r.role != "admin" {
		return fmt.Errorf("--grow changes the size of the gallery, which needs the role admin, and this access key has the role %s: have an admin run: facet gallery grow %q %d", r.role, g.Name, size)
	}
	err := r.insist(ctx, func(ctx context.Context) error {
		_, err := r.client.UpdateGallery(ctx, g.ID, client.GalleryChange{Size: &size})
		return err
	})
	if err == nil {
		fmt.Fprintf(r.Out, "the gallery %q has room for %d faces; it had room for %d\n", g.Name, size, g.Size)
	}
	return err
}
