package snapshots

import (
	"testing"
	"time"

	"facet/internal/must"
	"facet/raftfsm/health"
	"facet/raftfsm/logstore"
)

// openLog opens an empty log.
func openLog(t testing.TB) (*logstore.Log, *health.Monitor) {
	t.Helper()
	d, err := logstore.OpenUnsynced(t.TempDir())
	must.Do(t, err)
	t.Cleanup(func() { d.Close() })
	h := health.New(time.Second, time.Minute)
	t.Cleanup(h.Close)
	return logstore.NewLog(d, h), h
}
