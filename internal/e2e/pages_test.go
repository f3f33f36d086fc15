package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"facet/internal/must"
	"facet/node/wire"
)

// shown returns what a page shows below a command, without the lines that it leaves out.
func shown(t *testing.T, page, command string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", page))
	must.Do(t, err)
	_, rest, _ := strings.Cut(string(text), "\n    $ "+command+"\n")
	for line := range strings.Lines(rest) {
		line, inside := strings.CutPrefix(line, "    ")
		if strings.HasPrefix(line, "$ ") || !inside && line != "\n" {
			break
		}
		if line = strings.TrimSpace(line); line != "" && line != "…" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		t.Fatalf("%s shows nothing below %q", page, command)
	}
	return lines
}

// changing is what differs from cluster to cluster: ids, numbers, and who leads.
var changing = regexp.MustCompile(`[0-9a-f-]{36}|[0-9a-f]{12}|leader|follower|\d+`)

// form returns a line without what differs from cluster to cluster.
func form(line string) string {
	return strings.Join(strings.Fields(changing.ReplaceAllString(strings.ReplaceAll(line, strings.TrimSuffix(wire.Version, "-dev"), "VERSION"), "#")), " ")
}

// prints fails the test unless a command prints, soon, each line that a page shows below it.
func (s *shell) prints(page, command string, form func(string) string, args ...string) {
	s.t.Helper()
	want := shown(s.t, page, command)
	within(s.t, "facet "+strings.Join(args, " ")+" prints what "+page+" shows", func() error {
		out, _ := s.result(args...)
		var got []string
		for line := range strings.Lines(strings.ReplaceAll(out, wire.Version, strings.TrimSuffix(wire.Version, "-dev"))) {
			got = append(got, form(line))
		}
		for _, line := range want {
			if !slices.Contains(got, form(line)) {
				return fmt.Errorf("the page shows\n%s\nand the command prints\n%s", line, out)
			}
		}
		return nil
	})
}

// What pages show as printed is what the commands print.
func TestPagesShowWhatCommandsPrint(t *testing.T) {
	t.Parallel()
	c := shared(t)
	s := newTenant(t, c, "bank")
	s.prints("operations.md", "facet status", form, "status", "--dir", c.dir)
	s.prints("operations.md", "facet tenant show bank", form, "tenant", "show", "bank", "--dir", c.dir)

	s.run(0, "", "gallery", "create", "staff", "--size", "2")
	s.run(0, "", "enrol", original(biden), "--external-id", "E-0042")
	must.Do(t, os.Mkdir(filepath.Join(s.dir, "photos"), 0o700))
	list := "file\n"
	for _, row := range [][2]string{{"obama.jpg", obama}, {"collins.png", collins}, {"obama2.jpg", anotherObama}, {"rocket.jpg", rocket}, {"biden.jpg", biden}, {"ann.jpg", ""}} {
		list += "photos/" + row[0] + "\n"
		if row[1] != "" {
			put(t, filepath.Join(s.dir, "photos"), row[0], read(t, original(row[1])))
		}
	}
	put(t, s.dir, "staff.csv", []byte(list))
	s.prints("import.md", "facet import --check staff.csv --gallery staff", strings.TrimSpace, "import", "--check", "staff.csv", "--gallery", "staff")
}
