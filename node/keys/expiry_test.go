package keys

import (
	"context"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/cert"
	"facet/shard/seal"
)

// countingLog counts the lines of each level.
type countingLog map[slog.Level]int

func (countingLog) Enabled(context.Context, slog.Level) bool { return true }

func (l countingLog) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "facet cluster renew") {
		l[r.Level]++
	}
	return nil
}

func (l countingLog) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l countingLog) WithGroup(string) slog.Handler { return l }

// openKeys opens keys with certificates that were issued now.
func openKeys(t *testing.T, log slog.Handler) *Keys {
	t.Helper()
	dir := t.TempDir()
	in := func(file string) string { return filepath.Join(dir, file) }
	ca, err := cert.NewCA("test")
	must.Do(t, err)
	who := id.Node{UUID: id.Random([16]byte{1})}
	own, err := ca.IssueNode(who, []string{"127.0.0.1"})
	must.Do(t, err)
	must.Do(t, own.Save(in("node.pem"), in("node.key")))
	server, err := ca.IssueServer([]string{"127.0.0.1"})
	must.Do(t, err)
	must.Do(t, server.Save(in("server.pem"), in("server.key")))
	must.Do(t, os.WriteFile(in("ca.pem"), ca.CertPEM(), 0o600))
	must.Do(t, os.WriteFile(in("some.key"), []byte(hex.EncodeToString(make([]byte, seal.KeyBytes))), 0o600))
	k, err := Open(t.Context(), Config{
		Node: who, Self: id.NewMember(who, 1), Certificates: dir, Cluster: Source{File: in("some.key")}, Gossip: Source{File: in("some.key")}, Log: slog.New(log),
	})
	must.Do(t, err)
	return k
}

func TestExpiryIsLoggedOnceADay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := countingLog{}
		k := openKeys(t, log)
		end := k.Credentials().NodeEnds
		ctx, cancel := context.WithCancel(t.Context())
		go k.Run(ctx)
		f := func(before time.Duration, warnings, errs int) {
			t.Helper()
			time.Sleep(time.Until(end.Add(-before)))
			synctest.Wait()
			if log[slog.LevelWarn] != warnings || log[slog.LevelError] != errs {
				t.Errorf("%s before the end: %v, want %d warnings and %d errors", before, log, warnings, errs)
			}
			clear(log)
		}
		const day = 24 * time.Hour
		f(30*day+time.Hour, 0, 0)
		f(29*day+12*time.Hour, 2, 0) // of the node's and the server's, once
		f(19*day+12*time.Hour, 20, 0)
		f(3*day+12*time.Hour, 32, 0)
		f(12*time.Hour, 0, 6)
		cancel()
		synctest.Wait()
		if s := k.State(); s.Running || s.Last.IsZero() {
			t.Errorf("after the end of its context: %+v", s)
		}
	})
}
