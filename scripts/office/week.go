package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"facet.internal/client"
	"facet/cmd/facet/dev"
	"facet/cmd/facet/process"
	"facet/internal/testkit/launch"
)

// gallery is the name of the gallery.
const gallery = "members"

// settings say what the week is made of.
type settings struct {
	people             int
	dir, facet, photos string
	out                io.Writer
}

// week is the state of the story so far.
type week struct {
	*shell
	people  int
	room    darkroom
	list    []member
	cluster *launch.Process
	info    dev.Info
	apiKey  string
	nodes   []*client.Client // of the gallery, one for each node
	// subjects has the subject of each external id, by the report of the import.
	subjects map[string]string
	// expires is when the visitor's event expires.
	expires time.Time
}

// run carries out the week and prints it. The error names the first number that differs.
func run(ctx context.Context, cfg settings) (err error) {
	if cfg.people < peopleMin || cfg.people > peopleMax {
		return fmt.Errorf("-people is %d to %d", peopleMin, peopleMax)
	}
	for _, path := range []*string{&cfg.dir, &cfg.facet, &cfg.photos} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if _, err := exec.LookPath(cfg.facet); err != nil {
		return fmt.Errorf("%w: run \"make build\"", err)
	}
	if err := prepare(cfg.dir); err != nil {
		return err
	}
	starter := process.OpenStarter()
	defer starter.Close()
	w := &week{
		shell: &shell{dir: cfg.dir, program: cfg.facet, out: cfg.out, starter: starter}, people: cfg.people,
		room: darkroom{photos: cfg.photos}, list: plan(cfg.people), subjects: map[string]string{},
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	begun := time.Now()
	for _, day := range []func(context.Context) error{w.before, w.monday, w.tuesday, w.wednesday, w.thursday, w.friday, w.weekend} {
		err := day(ctx)
		if err := cmp.Or(w.err, err); err != nil {
			return err
		}
	}
	fmt.Fprintf(w.out, "\nEvery number is as it was put in. The week took %.0f s.\n", time.Since(begun).Seconds())
	return nil
}

// mark is a file in the folders that this program makes.
const mark = ".demo-office"

// prepare makes the folder. It removes one of an earlier week, and no other.
func prepare(dir string) error {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(dir, mark)); err != nil {
			return fmt.Errorf("%s is not a folder of an earlier week: name another by -dir, or remove it", dir)
		}
		if err := dev.Remove(filepath.Join(dir, "dev")); err != nil {
			return err
		}
		err = os.RemoveAll(dir)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, mark), nil, 0o600)
}

// head prints the title of a day.
func (w *week) head(text string) { fmt.Fprintf(w.out, "\n%s\n", text) }

// tell prints a sentence.
func (w *week) tell(format string, args ...any) {
	fmt.Fprintf(w.out, "   %s\n", fmt.Sprintf(format, args...))
}

// same checks a number.
func (w *week) same(what string, got, want int) error {
	if got != want {
		return fmt.Errorf("%s: %d, want %d", what, got, want)
	}
	w.tell("✓ %s: %d", what, got)
	return nil
}

// sameIDs checks a set of ids, both sorted.
func (w *week) sameIDs(what string, got, want []string) error {
	for _, id := range got {
		if _, ok := slices.BinarySearch(want, id); !ok {
			return fmt.Errorf("%s: %d, want %d; %s should not be there", what, len(got), len(want), id)
		}
	}
	for _, id := range want {
		if _, ok := slices.BinarySearch(got, id); !ok {
			return fmt.Errorf("%s: %d, want %d; %s is missing", what, len(got), len(want), id)
		}
	}
	return w.same(what, len(got), len(want))
}

// all returns the external ids of the good rows.
func (w *week) all() []string {
	return good(w.list, append(slices.Clone(crowd), doubled, doubledAgain, erased)...)
}

// only returns the one external id of a face.
func (w *week) only(f face) string { return good(w.list, f)[0] }

// before makes the list and its photos.
func (w *week) before(context.Context) error {
	w.head("An office with a list of " + fmt.Sprint(w.people) + " people")
	begun := time.Now()
	faces := append(slices.Clone(crowd), doubled, doubledAgain, doubledThird, erased, visitor, firstAgain)
	if err := w.room.open(faces...); err != nil {
		return err
	}
	if err := w.room.develop(w.dir, w.list); err != nil {
		return err
	}
	for name, f := range map[string]face{"third.jpg": doubledThird, "leaves.jpg": erased, "visitor.jpg": visitor, "other.jpg": firstAgain} {
		if err := w.room.picture(f, w.people+len(name), filepath.Join(w.dir, name)); err != nil {
			return err
		}
	}
	w.tell("%.0f s went into their photos. The sample photos do not show so many persons: most rows", time.Since(begun).Seconds())
	w.tell("have one of %d faces, each time cropped, turned, lit and compressed otherwise. So each row", len(crowd))
	w.tell("is a member of her own, and how many of them show one face is known.")
	w.tell("Everything is in %s; facet is %s.", w.dir, w.program)
	return nil
}

// stop stops the cluster, if it runs.
func (w *week) stop() error {
	if w.cluster == nil {
		return nil
	}
	w.cluster.End(syscall.SIGTERM)
	w.cluster = nil
	return nil
}

// reported reads the report of the import: what became of the rows, in their order.
func (w *week) reported() ([][]string, error) {
	file, err := os.Open(filepath.Join(w.dir, "members.csv.report.csv"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) == 0 {
		return nil, fmt.Errorf("read the report: %d lines: %w", len(rows), err)
	}
	return rows[1:], nil
}

// checkReport compares the report with the list. The subjects of an earlier report stay.
func (w *week) checkReport() error {
	rows, err := w.reported()
	if err != nil {
		return err
	}
	if err := w.same("lines of the report", len(rows), len(w.list)); err != nil {
		return err
	}
	in := 0
	for i, m := range w.list {
		row := rows[i] // row, external_id, outcome, subject_id, event_id, quality, reason, file
		switch subject := row[3]; {
		case row[1] != m.externalID:
			return fmt.Errorf("line %d of the report is of %s, want %s", i+1, row[1], m.externalID)
		case m.bad != "":
			if row[2] != "failed" || !strings.HasPrefix(row[6], m.bad) {
				return fmt.Errorf("%s is %s, %q, want failed, %q", m.externalID, row[2], row[6], m.bad)
			}
		case row[2] != "registered":
			return fmt.Errorf("%s is %s, %q, want registered", m.externalID, row[2], row[6])
		case w.subjects[m.externalID] != "" && w.subjects[m.externalID] != subject:
			return fmt.Errorf("%s is subject %s, and was %s", m.externalID, subject, w.subjects[m.externalID])
		default:
			w.subjects[m.externalID] = subject
			in++
		}
	}
	return w.same("rows that are in", in, len(w.list)-3)
}
