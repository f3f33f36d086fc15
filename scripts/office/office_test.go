package main

import (
	"encoding/csv"
	"image"
	_ "image/jpeg"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"facet/internal/must"
)

// quietWeek is a week that prints nothing.
func quietWeek(t *testing.T) *week {
	return &week{shell: &shell{dir: t.TempDir(), out: io.Discard}, people: peopleMin, list: plan(peopleMin), subjects: map[string]string{}}
}

func TestChecksNameDifferences(t *testing.T) {
	t.Parallel()
	w := quietWeek(t)
	f := func(err error, want string) {
		t.Helper()
		if got := ""; err != nil || want != "" {
			if err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
	f(w.same("members", 3, 3), "")
	f(w.same("members", 2, 3), "members: 2, want 3")
	f(w.sameIDs("members", []string{"1", "2"}, []string{"1", "2"}), "")
	f(w.sameIDs("members", []string{"1"}, []string{"1", "2"}), "members: 1, want 2; 2 is missing")
	f(w.sameIDs("members", []string{"1", "3"}, []string{"1", "2"}), "members: 2, want 2; 3 should not be there")
	f(w.sameIDs("members", []string{"1", "1"}, []string{"1"}), "members: 2, want 1")
}

// report writes what an import would report of the list.
func report(t *testing.T, w *week, change func(rows [][]string)) {
	t.Helper()
	rows := [][]string{{"row", "external_id", "outcome", "subject_id", "event_id", "quality", "reason", "file"}}
	for _, m := range w.list {
		row := []string{"", m.externalID, "registered", "s" + m.externalID, "", "", "", m.file}
		if m.bad != "" {
			row[2], row[3], row[6] = "failed", "", m.bad+": more words"
		}
		rows = append(rows, row)
	}
	change(rows[1:])
	file, err := os.Create(filepath.Join(w.dir, "members.csv.report.csv"))
	must.Do(t, err)
	defer file.Close()
	must.Do(t, csv.NewWriter(file).WriteAll(rows))
}

func TestWrongReportsFail(t *testing.T) {
	t.Parallel()
	w := quietWeek(t)
	f := func(want string, change func(rows [][]string)) {
		t.Helper()
		report(t, w, change)
		err := w.checkReport()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f("", func([][]string) {})
	f("is registered", func(rows [][]string) { rows[peopleMin/5][2] = "registered" })
	f("want failed", func(rows [][]string) { rows[peopleMin/5][6] = "the disk is full" })
	f("is failed", func(rows [][]string) { rows[0][2] = "failed" })
	f("and was", func(rows [][]string) { rows[0][3] = "another" })
	f("want "+w.list[0].externalID, func(rows [][]string) { rows[0], rows[1] = rows[1], rows[0] })
}

func TestListHasTheAskedNumber(t *testing.T) {
	t.Parallel()
	for _, people := range []int{peopleMin, 200, 2000, peopleMax} {
		w := &week{list: plan(people)}
		if got := len(w.all()); got != people-3 {
			t.Errorf("%d good rows of %d", got, people)
		}
		for _, f := range []face{doubled, doubledAgain, erased} {
			if got := good(w.list, f); len(got) != 1 {
				t.Errorf("%d rows of one face: %q", people, got)
			}
		}
		if !slices.Contains(w.all(), "4711") || !slices.Contains(w.all(), "4712") {
			t.Errorf("4711 and 4712 are no good rows of %d", people)
		}
	}
}

func TestPicturesOfOneFaceDiffer(t *testing.T) {
	t.Parallel()
	d := &darkroom{photos: filepath.Join("..", "..", "assets", "photos")}
	must.Do(t, d.open(crowd[0]))
	dir, seen := t.TempDir(), map[string]bool{}
	for number := range 20 {
		name := filepath.Join(dir, "x.jpg")
		must.Do(t, d.picture(crowd[0], number, name))
		content, err := os.ReadFile(name)
		must.Do(t, err)
		if _, _, err := image.Decode(strings.NewReader(string(content))); err != nil || seen[string(content)] {
			t.Errorf("picture %d: %v, seen before: %v", number, err, seen[string(content)])
		}
		seen[string(content)] = true
	}
}
