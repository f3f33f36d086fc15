package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"facet/internal/must"
)

// auditRecord is a line of JSON of facet audit search and tail.
type auditRecord struct {
	Number    uint64 `json:"number"`
	Kind      string `json:"kind"`
	Operation string `json:"operation"`
	Status    int    `json:"status"`
	Holder    string `json:"holder"`
	Reason    string `json:"reason"`
	Purpose   string `json:"purpose"`
}

// audited returns the shared cluster and the shell of a new tenant, whose log has a few records. auditor.json is
// the profile of an auditor.
func audited(t *testing.T, tenant string) (*cluster, *shell) {
	t.Helper()
	c := shared(t)
	s := newTenant(t, c, tenant)
	s.wide = true // names of logs, URLs, records
	s.run(0, "", "tenant", "set", tenant, "--audit", "strict", "--dir", c.dir)
	s.run(0, "", "key", "create", "--tenant", tenant, "--role", "auditor", "--holder", "internal audit", "--save", "auditor.json", "--dir", c.dir)
	s.run(0, "", "gallery", "create", "staff")
	s.run(0, "", "enrol", photoPath(obama))
	s.run(0, "", "search", photoPath(anotherObama))
	return c, s
}

// records reads lines of JSON.
func records(t *testing.T, lines string) (list []auditRecord) {
	t.Helper()
	for line := range strings.Lines(lines) {
		var r auditRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, r)
	}
	return list
}

// An auditor searches the log, and a collector follows it as lines of JSON, until it is told to end.
func TestAuditLogIsSearchedAndFollowed(t *testing.T) {
	t.Parallel()
	c, s := audited(t, "audit-search")
	auditor := []string{"--profile", "auditor.json"}
	found := records(t, s.run(0, "", append([]string{"audit", "search", "--json", "--operation", "search", "--status", "200"}, auditor...)...))
	if len(found) != 1 || found[0].Operation != "POST /v1.1/face/search" || found[0].Status != 200 {
		t.Errorf("the searches in the log are %+v", found)
	}
	s.run(0, "POST /v1.1/subjects", append([]string{"audit", "search", "--kind", "intent"}, auditor...)...)
	if none := s.run(0, "NUMBER", append([]string{"audit", "search", "--until", "2020-01-01T00:00:00Z"}, auditor...)...); strings.Count(none, "\n") != 1 {
		t.Errorf("records before the log began:\n%s", none)
	}
	s.run(2, "give a time", append([]string{"audit", "search", "--since", "yesterday"}, auditor...)...)

	s.run(0, "", "key", "create", "--tenant", "audit-search", "--role", "search-only", "--holder", "door 3", "--dir", c.dir)
	var orders []auditRecord
	within(t, "three orders are in the log", func() error { // nothing waits for outcomes
		if orders = records(t, s.run(0, "", append([]string{"audit", "search", "--json", "--kind", "command"}, auditor...)...)); len(orders) != 3 {
			return fmt.Errorf("%+v", orders)
		}
		return nil
	})
	if o := orders[0]; o.Operation != "create access key" || !strings.HasSuffix(o.Reason, " search-only door 3") || o.Status != 201 || o.Holder == "" {
		t.Errorf("the operator's orders in the log are %+v", orders)
	}

	for range 11 { // records of reading the log, which the follower leaves out
		s.run(0, "", append([]string{"audit", "search"}, auditor...)...)
	}
	tail := exec.Command(program(), append([]string{"audit", "tail", "--json"}, auditor...)...)
	tail.Dir = s.dir
	out, err := tail.StdoutPipe()
	must.Do(t, err)
	must.Do(t, starter.Start(tail))
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			lines <- in.Text()
		}
	}()
	seen := map[uint64]string{}
	until := func(n int, operation string) {
		t.Helper()
		for late := time.After(patience); ; {
			if got := count(seen, operation); got >= n {
				return
			}
			select {
			case line := <-lines:
				r := records(t, line)[0]
				if seen[r.Number] != "" {
					t.Errorf("record %d came twice", r.Number)
				}
				seen[r.Number] = r.Operation
			case <-late:
				t.Fatalf("the follower has %v, want %d of %s", seen, n, operation)
			}
		}
	}
	until(1, "POST /v1.1/face/search")
	var work sync.WaitGroup
	for range 4 { // records come while the follower reads a second page
		one := *s
		work.Go(func() {
			for range 15 {
				one.run(0, "", "tag", "list")
			}
		})
	}
	work.Wait()
	until(60, "GET /v1.1/tags")
	if count(seen, "GET /api/audit") > 0 {
		t.Errorf("the follower prints its own requests: %v", seen)
	}
	must.Do(t, tail.Process.Signal(syscall.SIGINT))
	if err := tail.Wait(); err != nil {
		t.Errorf("the follower ends with %v", err)
	}

	if out := s.run(0, "the cluster: ", "audit", "export-all", "--to", "audits", "--dir", c.dir); !strings.Contains(out, "tenant audit-search: ") {
		t.Errorf("the tenant's log is not exported:\n%s", out)
	}
	key := strings.TrimSpace(s.run(0, "", "audit", "key", "--cluster", "--dir", c.dir))
	s.run(0, "VALID: ", "audit", "verify", "audits/cluster", "--key", key)
	s.run(0, "set tenant", "audit", "search", "--cluster", "--json", "--kind", "command", "--most", "1000", "--dir", c.dir)
	s.run(0, "proof: ", "audit", "prove", "1", "--cluster", "--to", "1.tlog-proof", "--dir", c.dir)
}

func count(seen map[uint64]string, operation string) (n int) {
	for _, s := range seen {
		if s == operation {
			n++
		}
	}
	return n
}
