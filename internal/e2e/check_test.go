package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"facet/internal/must"
	"facet/internal/testkit"
	"facet/internal/testkit/launch"
)

// checked runs facet import --check and returns its summary, its output and its report.
func checked(t *testing.T, c *cluster, k *client, list string, more ...string) (sum map[string]any, out string, rows [][]string) {
	t.Helper()
	out, err := facet(append([]string{"import", "--check", "--dir", c.dir, "--api-key", k.APIKey, "-o", "json", list}, more...)...)
	begin, end := strings.Index(out, "{\n"), strings.LastIndex(out, "\n}")
	if begin < 0 || end < 0 || json.Unmarshal([]byte(out[begin:end+2]), &sum) != nil {
		t.Fatalf("check: %v\n%s", err, out)
	}
	if good := sum["failed"] == 0.0 && sum["doubles"] == 0.0; good != (err == nil) {
		t.Errorf("the exit status is %v, the summary %v", err, sum)
	}
	return sum, out, reported(t, list+".check.csv")
}

// peopleList is a list with each kind of row, and the photos that it names.
func peopleList(t *testing.T, dir string) string {
	t.Helper()
	for name, what := range map[string]string{"o.jpg": obama, "o2.jpg": anotherObama, "b.jpg": biden, "c.png": collins, "rocket.jpg": rocket, "many.jpg": threePeople} {
		put(t, dir, name, photo(t, what))
	}
	return put(t, dir, "people.csv", []byte("external_id,file,tags,expires\n1001,o.jpg,,\n1002,o2.jpg,,\n1003,rocket.jpg,,\n1004,many.jpg,,\n"+
		"1005,gone.jpg,,\n4711,b.jpg,,\n1006,b.jpg,,\n1001,o2.jpg,,\n1007,c.png,nobody,\n1008,c.png,,2199-01-31\n1009,c.png,,2001-01-31\n"))
}

func TestCheckTellsAndEnrolsNothing(t *testing.T) {
	c := shared(t)
	k := c.client(t, 10)
	known := struct{ ID string }{}
	k.post(t, 0, "/v1.1/subjects", map[string]any{"face": encoded(t, biden), "externalId": "4711"}).Want(t, 201, &known)
	dir := t.TempDir()
	list := peopleList(t, dir)
	before := string(k.get(t, 0, "/v1.1/subjects").Body)
	sum, out, rows := checked(t, c, k, list)
	for name, want := range map[string]float64{
		"rows": 11, "registered": 2, "added": 0, "skipped": 1, "doubles": 3, "doublesInList": 3, "doublesInGallery": 1, "failed": 5,
	} {
		if sum[name] != want {
			t.Errorf("%s is %v, want %v\n%s", name, sum[name], want, out)
		}
	}
	want := []string{
		"2 registered rows=3", "3 double rows=2 9", "4 failed rows= no face", "5 failed rows= the image shows several faces", "6 failed rows= there is no such file",
		"7 skipped rows=8 the gallery knows", "8 double rows=7 shows the person of row 7", "9 double rows=3 shows the person of row 3", "10 failed rows= the gallery has no tag", "11 registered rows= ",
		"12 failed rows= ",
	}
	wantRows(t, rows, want, func(row []string) string {
		return strings.ToLower(fmt.Sprintf("%s %s rows=%s %s", row[0], row[2], row[3], row[8]))
	})
	if len(rows) == len(want) && (rows[6][4] != known.ID || rows[6][5] != "4711" || rows[6][6] != "9999") {
		t.Errorf("the enrolled person is reported as %q", rows[6])
	}
	if after := string(k.get(t, 0, "/v1.1/subjects").Body); after != before {
		t.Errorf("the gallery was %s, and is %s", before, after)
	}
	var jobs struct{ Jobs []any }
	if k.get(t, 0, "/v1.1/jobs/bulkregister").Want(t, 200, &jobs); len(jobs.Jobs) != 0 {
		t.Errorf("jobs: %v", jobs)
	}
	if out, err := facet("import", "--check", "--bucket", "file:///x", "--dir", c.dir, "--api-key", k.APIKey, list); err == nil || !strings.Contains(out, "leave --bucket out") {
		t.Errorf("with --bucket: %v, %s", err, out)
	}
	n := testkit.Needles{}
	photoOf(t, n, collins)
	files, _, err := n.Below(c.dir, func(file string, what []string) { t.Errorf("%s contains %v", file, what) })
	if err != nil || files < 10 {
		t.Errorf("%d files scanned: %v", files, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.state")); len(left) != 0 {
		t.Errorf("the check left %q", left)
	}
}

// keeper returns the node that keeps a check of the tenant, -1 for none: a tenant has at most 8 checks on a node.
func (k *client) keeper(t *testing.T) int {
	t.Helper()
	for node := range k.info.Nodes {
		mine := 0
		for ; mine < 8; mine++ {
			a := k.post(t, node, "/v1.1/face/checks", nil)
			if a.Status == http.StatusTooManyRequests {
				break
			}
			var begun struct{ ID string }
			a.Want(t, http.StatusCreated, &begun)
			defer k.call(t, node, http.MethodDelete, "/v1.1/face/checks/"+begun.ID, nil)
		}
		if mine == 7 {
			return node
		}
	}
	return -1
}

// The node that keeps a check dies: the command says so and begins again.
func TestCheckBeginsAgainAfterItsNodeDied(t *testing.T) {
	c := killable(t)
	k := c.client(t, 10)
	folder := crowd(t, importFiles)
	var admins []string
	for _, n := range c.info.Nodes {
		admins = append(admins, n.Admin)
	}
	const photos = `facet_requests_total{operation="POST /v1.1/face/checks/{checkId}"`
	before := counted(t, admins, photos)
	p, err := launch.Start(exec.Command(program(), "import", "--check", "--dir", c.dir, "--api-key", k.APIKey, folder), starter.Start)
	must.Do(t, err)
	within(t, "the check has begun", func() error { // keeper takes the places of a check that has not
		if counted(t, admins, photos) == before {
			return errors.New("no photo is sent")
		}
		return nil
	})
	p.Signal(syscall.SIGSTOP) // the check does not end before its node does
	victim := -1
	within(t, "a node keeps the check", func() error {
		if victim = k.keeper(t); victim < 0 {
			return errors.New("none does")
		}
		return nil
	})
	c.kill(t, victim)
	p.Signal(syscall.SIGCONT)
	code := p.Wait()
	for _, want := range []string{"the node that kept the faces has stopped", "1 registered", strconv.Itoa(importFiles-1) + " doubles"} {
		if !strings.Contains(p.Out.String(), want) {
			t.Errorf("the check says nothing like %q: %v\n%s", want, code, &p.Out)
		}
	}
	if n := len(k.active(t, (victim+1)%len(c.info.Nodes))); n != 0 {
		t.Errorf("%d subjects", n)
	}
}
