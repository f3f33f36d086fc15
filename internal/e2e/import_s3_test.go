//go:build long

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"facet/internal/must"
)

// A list goes in by jobs through a real S3 server while a node dies. Each row has its outcome, no
// copy stays in the bucket, and a second run sends nothing.
func TestImportThroughS3SurvivesKilledNode(t *testing.T) {
	const good = 80
	store := startS3(t)
	address, objects := strings.Replace(store.url, "/facet?", "?", 1), filepath.Dir(store.dir)
	c := serve(t, program(), 3, 3, "--bucket", address)
	k := c.client(t, 2*good)
	k.post(t, 0, "/v1.1/tags/staff", nil).Want(t, 200, nil)
	dir := t.TempDir()
	for name, what := range map[string]string{"one.jpg": obama, "two.jpg": anotherObama, "rocket.jpg": rocket, "many.jpg": threePeople} {
		put(t, dir, name, photo(t, what))
	}
	put(t, dir, "notes.txt", []byte("no photo"))
	list := "external_id,file,tags\n"
	for i := range good {
		list += fmt.Sprintf("E-%d,one.jpg,staff\n", i)
	}
	list += "E-0,two.jpg,\nB-1,rocket.jpg,\nB-2,many.jpg,\nB-3,notes.txt,\nB-4,gone.jpg,\nB-5,one.jpg,nobody\n"
	file := put(t, dir, "staff.csv", []byte(list))
	profile, err := json.Marshal(map[string]any{"base_urls": k.info.BaseURLs, "ca_file": k.info.CAFile, "access_key": k.Signer.AccessKey, "secret_key": k.Signer.SecretKey})
	must.Do(t, err)
	var tenants []struct{ Tenant string }
	decode(t, c.facet(t, append([]string{"tenant", "show", "bank", "--json"}, c.where()...)...), &tenants)
	args := []string{"import", "--profile", put(t, dir, "bank.json", profile), "--api-key", k.APIKey, "--bucket", address + "&prefix=" + tenants[0].Tenant + "/", file}
	done := started(args...)
	k.waitActive(t, 0, good/8)
	victim := c.leader(t, 1)
	victim.Signal(syscall.SIGKILL)
	if got := <-done; got.err == nil || !strings.Contains(got.out, "5 of 86 rows are not in") {
		t.Errorf("import: %v\n%s", got.err, got.out)
	}
	c.start(t, victim)
	c.waitWhole(t)

	rows := reported(t, file+".report.csv")
	for i, row := range rows {
		want := map[int]string{good: "added", good + 1: "failed", good + 2: "failed", good + 3: "failed", good + 4: "failed", good + 5: "failed"}[i]
		if i < good {
			want = "registered"
		}
		if row[0] != strconv.Itoa(i+2) || row[2] != want || want == "failed" && row[6] == "" {
			t.Errorf("the report has %q in place %d, want %s", row, i+1, want)
		}
	}
	if len(rows) != good+6 || len(k.active(t, 0)) != good || k.events(t, "E-0") != 2 {
		t.Errorf("%d rows, %d subjects, %d events of E-0", len(rows), len(k.active(t, 0)), k.events(t, "E-0"))
	}
	if n := filesIn(t, objects); n != 0 {
		t.Errorf("%d copies are left in the bucket", n)
	}
	whole := strings.Split(strings.TrimSpace(list), "\n")[:1+good+1]
	put(t, "", file, []byte(strings.Join(whole, "\n")+"\n"))
	admins := strings.Split(c.where()[1], ",")
	before := counted(t, admins, `facet_requests_total{operation="POST`)
	if again, err := facet(args...); err != nil || !strings.Contains(again, "81 were in already, 0 registered now") {
		t.Errorf("the second run: %v\n%s", err, again)
	}
	if after := counted(t, admins, `facet_requests_total{operation="POST`); after != before {
		t.Errorf("the second run made %d POSTs", after-before)
	}
}
