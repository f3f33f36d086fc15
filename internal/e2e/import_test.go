package e2e

import (
	"encoding/csv"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"facet/internal/must"
	"facet/internal/testkit/launch"
)

// importFiles is how many photos are imported while a node dies. The import takes
// some seconds.
const importFiles = 120

// bucket returns the URL of the folder of the tenant's files, and the folder.
func (c *cluster) bucket() (address, dir string) {
	return "file://" + (&url.URL{Path: c.info.BucketDir}).EscapedPath() + "?metadata=skip&no_tmp_dir=true", c.info.BucketDir
}

// filesIn counts the files of a folder and those below it.
func filesIn(t *testing.T, dir string) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			n++
		}
		return err
	})
	must.Do(t, err)
	return n
}

// put writes a file below dir.
func put(t *testing.T, dir, name string, content []byte) string {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
	must.Do(t, os.WriteFile(file, content, 0o600))
	return file
}

// read returns the content of a file.
func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	must.Do(t, err)
	return b
}

// crowd fills a folder with equal photos, small ones.
func crowd(t *testing.T, n int) (folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "photos")
	one := photo(t, obama)
	for i := range n {
		put(t, folder, strconv.Itoa(i)+".jpg", one)
	}
	return folder
}

// reported returns the rows of a report without its head.
func reported(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := os.Open(name)
	must.Do(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil || len(rows) == 0 {
		t.Fatalf("the report has %d lines: %v", len(rows), err)
	}
	return rows[1:]
}

// wantRows checks the beginning of each row, as show writes it.
func wantRows(t *testing.T, rows [][]string, want []string, show func(row []string) string) {
	t.Helper()
	for i, row := range rows {
		if got := show(row); i >= len(want) || !strings.HasPrefix(got, want[i]) {
			t.Errorf("the report has %q in place %d", got, i+1)
		}
	}
	if len(rows) != len(want) {
		t.Errorf("the report has %d rows, want %d", len(rows), len(want))
	}
}

// wantAll checks that a report has n rows, each in, with an event of its own.
func wantAll(t *testing.T, report string, n int) {
	t.Helper()
	events := map[string]bool{}
	for i, row := range reported(t, report) {
		if row[0] != strconv.Itoa(i+1) || row[2] == "failed" || row[4] == "" || row[5] == "" {
			t.Errorf("the report has %q in place %d", row, i+1)
		}
		events[row[4]] = true
	}
	if len(events) != n {
		t.Errorf("the report has %d events, want %d", len(events), n)
	}
}

// waitActive waits until a gallery has n subjects.
func (k *client) waitActive(t *testing.T, node, n int) {
	t.Helper()
	within(t, fmt.Sprintf("the import has registered %d photos", n), func() error {
		if active := len(k.active(t, node)); active < n {
			return fmt.Errorf("%d are registered", active)
		}
		return nil
	})
}

// A node dies during two imports, one direct and one through jobs. Each photo is registered exactly once.
func TestImportSurvivesAKilledNode(t *testing.T) {
	c := killable(t)
	address, dir := c.bucket()
	victim := c.leader(t, 1)
	witness := (victim + 1) % len(c.info.Nodes)
	type run struct {
		*launch.Process
		k      *client
		folder string
	}
	var runs []run
	for _, more := range [][]string{nil, {"--bucket", address}} {
		r := run{k: c.client(t, 2*importFiles), folder: crowd(t, importFiles)}
		args := append([]string{"import", "--dir", c.dir, "--api-key", r.k.APIKey, r.folder}, more...)
		var err error
		r.Process, err = launch.Start(exec.Command(program(), args...), starter.Start)
		must.Do(t, err)
		r.k.waitActive(t, witness, 1)
		if more == nil {
			r.Signal(syscall.SIGSTOP) // until the other one registers photos, too
		}
		runs = append(runs, r)
	}
	runs[0].Signal(syscall.SIGCONT)
	c.kill(t, victim)
	for i, r := range runs {
		if r.Ended() {
			t.Fatalf("import %d was at its end before the kill\n%s", i, &r.Out)
		}
	}
	for i, r := range runs {
		code := r.Wait()
		if want := strconv.Itoa(importFiles) + " registered, "; code != 0 || !strings.Contains(r.Out.String(), want) {
			t.Errorf("import %d: %d\n%s", i, code, &r.Out)
		}
		if n := len(r.k.active(t, witness)); n != importFiles {
			t.Errorf("import %d: %d subjects after %d photos", i, n, importFiles)
		}
		wantAll(t, r.folder+".report.csv", importFiles)
	}
	if n := filesIn(t, dir); n != 0 {
		t.Errorf("%d copies are left in the object store", n)
	}
}

// An import is interrupted and killed; each time the same command goes on. Without its state all
// photos are registered again, and the command says so.
func TestImportGoesOnAfterItsEnd(t *testing.T) {
	c := shared(t)
	const n = 40
	f := func(t *testing.T, ends []syscall.Signal, more ...string) {
		t.Helper()
		k := c.client(t, 2*n)
		folder := crowd(t, n)
		report := folder + ".report.csv"
		args := append([]string{"import", "--dir", c.dir, "--api-key", k.APIKey, "--at-once", "4", folder}, more...)
		for part, end := range ends {
			p, err := launch.Start(exec.Command(program(), args...), starter.Start)
			must.Do(t, err)
			k.waitActive(t, 0, (part+1)*n/6)
			p.Signal(end)
			if code := p.Wait(); code == 0 || end == syscall.SIGINT && !strings.Contains(p.Out.String(), "the same command goes on") {
				t.Errorf("after %v: %d, %s", end, code, &p.Out)
			}
		}
		if got := len(k.active(t, 0)); got >= n {
			t.Errorf("%d subjects: the import was at its end", got)
		}
		for times, lost := range []bool{false, true} {
			if lost {
				must.Do(t, os.Remove(report+".state"))
			}
			out, err := facet(args...)
			if err != nil || strings.Contains(out, "all rows without an external id are registered again (40)") != lost {
				t.Errorf("state lost %v: %v, %s", lost, err, out)
			}
			if got, want := len(k.active(t, 0)), n*(times+1); got != want {
				t.Errorf("state lost %v: %d subjects, want %d", lost, got, want)
			}
			wantAll(t, report, n)
		}
	}
	t.Run("direct", func(t *testing.T) { f(t, []syscall.Signal{syscall.SIGINT, syscall.SIGKILL}) })
	address, dir := c.bucket()
	t.Run("jobs", func(t *testing.T) {
		f(t, []syscall.Signal{syscall.SIGKILL}, "--bucket", address)
		if n := filesIn(t, dir); n != 0 {
			t.Errorf("%d copies are left in the object store", n)
		}
	})
}

func TestImportReportsEachRow(t *testing.T) {
	c := shared(t)
	k := c.client(t, 10)
	k.post(t, 0, "/v1.1/tags/staff", nil).Want(t, 200, nil)
	dir := t.TempDir()
	for name, what := range map[string]string{"one.jpg": obama, "rocket.jpg": rocket, "many.JPG": threePeople, "ü.png": collins} {
		put(t, dir, "photos/"+name, photo(t, what))
	}
	put(t, dir, "photos/notes.txt", []byte("no photo"))
	list := put(t, dir, "staff.csv", []byte("\ufefffile;tags;department\r\n"+
		"photos/one.jpg;staff;x\r\nphotos/rocket.jpg;;x\r\nphotos/many.JPG;;x\r\nphotos/ü.png;staff;x\r\n"+
		"photos/notes.txt;;x\r\nphotos/gone.jpg;;x\r\n/etc/passwd;;x\r\nphotos/one.jpg;nobody;x\r\n\"photos;;x\r\n"))
	out, err := facet("import", "--dir", c.dir, "--api-key", k.APIKey, "-o", "json", list)
	for _, want := range []string{`"registered": 2`, `"failed": 7`, `not read: ["department"]`, "7 of 9 rows are not in"} {
		if !strings.Contains(out, want) {
			t.Errorf("import says nothing like %q:\n%s", want, out)
		}
	}
	if err == nil {
		t.Error("the exit status tells nothing of the failures")
	}
	report := list + ".report.csv"
	want := []string{
		"2 registered ", "3 failed no face", "4 failed the image shows several faces", "5 registered ", "6 failed the image can't be read",
		"7 failed there is no such file", "8 failed the file is outside the list's folder", "9 failed ", "10 failed a quoted field",
	}
	wantRows(t, reported(t, report), want, func(row []string) string { return fmt.Sprint(row[0], " ", row[2], " ", row[6]) })
	if info, err := os.Stat(report); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the report: %v, %v", info.Mode(), err)
	}
	put(t, dir, "staff.csv", []byte("file\nphotos/one.jpg\nphotos/ü.png\n"))
	if out, err := facet("import", "--dir", c.dir, "--api-key", k.APIKey, list); err != nil || len(k.active(t, 0)) != 2 {
		t.Errorf("the good rows again: %v, %d subjects\n%s", err, len(k.active(t, 0)), out)
	}
	if out, err := facet("import", "--dir", c.dir, "--api-key", k.APIKey, t.TempDir()); err == nil || !strings.Contains(out, "no photo") {
		t.Errorf("an empty folder: %v, %s", err, out)
	}
}

// importAs imports and checks the summary's counts.
func importAs(t *testing.T, c *cluster, k *client, want string, args ...string) {
	t.Helper()
	out, err := facet(append([]string{"import", "--dir", c.dir, "--api-key", k.APIKey}, args...)...)
	if err != nil || !strings.Contains(out, want) {
		t.Errorf("import %q: %v, want %q\n%s", args, err, want, out)
	}
}

// events returns how many events the subject with an external id has.
func (k *client) events(t *testing.T, externalID string) int {
	t.Helper()
	var list struct {
		Subjects []struct{ ExternalID string }
	}
	k.get(t, 0, "/v1.1/subjects?externalId="+url.QueryEscape(externalID)).Want(t, 200, &list)
	return len(list.Subjects)
}

func TestImportTellsPersonsApart(t *testing.T) {
	c := shared(t)
	k := c.client(t, 20)
	dir := t.TempDir()
	for name, what := range map[string]string{"Ann/1.jpg": obama, "Ann/2.jpg": anotherObama, "Bo/1.jpg": biden} {
		put(t, dir, "people/"+name, photo(t, what))
	}
	people := filepath.Join(dir, "people")
	if sum, out, _ := checked(t, c, k, people, "--per-person"); sum["registered"] != 2.0 || sum["added"] != 1.0 || len(k.active(t, 0)) != 0 {
		t.Errorf("the check says %v\n%s", sum, out)
	}
	importAs(t, c, k, "3 rows: 2 registered, 1 added to persons, 0 replaced, 0 skipped, 0 failed", people, "--per-person")
	// The state knows them, then the gallery.
	for _, want := range []string{"3 rows: 3 were in already, 0 registered now, 0 added to", "3 rows: 0 registered, 0 added to persons, 0 replaced, 3 skipped"} {
		importAs(t, c, k, want, people, "--per-person")
		must.Do(t, os.Remove(people+".report.csv.state"))
	}
	if ann, bo := k.events(t, "Ann"), k.events(t, "Bo"); ann != 2 || bo != 1 {
		t.Errorf("Ann has %d events, Bo %d, want 2 and 1", ann, bo)
	}
	put(t, dir, "c.png", photo(t, collins))
	put(t, dir, "b.jpg", photo(t, biden))
	text := `{"external_id":"Ann","file":"c.png"}` + "\n" + `{"external_id":"Cy","file":"c.png","user_data":{"shift":2}}` + "\n" + `{"external_id":"Cy","file":"b.jpg"}` + "\n"
	list := put(t, dir, "more.jsonl", []byte(text))
	importAs(t, c, k, "3 rows: 1 registered, 1 added to persons, 0 replaced, 1 skipped", list)
	importAs(t, c, k, "3 rows: 2 were in already, 0 registered now, 0 added to persons, 1 replaced, 0 skipped", list, "--known", "replace")
	if ann, cy := k.events(t, "Ann"), k.events(t, "Cy"); ann != 2 || cy != 2 {
		t.Errorf("Ann has %d events, Cy %d, want 2 and 2", ann, cy)
	}
	other := put(t, dir, "other.csv", []byte("external_id,file\nBo,c.png\n"))
	importAs(t, c, k, "1 rows: 0 registered, 1 added", other, "--known", "add")
	if bo := k.events(t, "Bo"); bo != 2 {
		t.Errorf("Bo has %d events, want 2", bo)
	}
	address, bucket := c.bucket()
	byJobs := put(t, dir, "jobs.csv", []byte("external_id,file,expires\nDi,c.png,2198-01-31\nDi,b.jpg,\nBo,people/Ann/1.jpg,\n"))
	importAs(t, c, k, "3 rows: 1 registered, 1 added to persons, 0 replaced, 1 skipped", byJobs, "--bucket", address)
	if a := k.get(t, 0, "/v1.1/subjects?externalId=Di"); strings.Count(string(a.Body), `"expires":"2198-01-31T00:00:00.000+00:00"`) != 1 {
		t.Errorf("the job's photo does not expire: %s", a.Body)
	}
	if n := filesIn(t, bucket); n != 0 {
		t.Errorf("%d copies are left in the object store", n)
	}
}
