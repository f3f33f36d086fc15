package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/cli"
)

// The cluster is healthy, then not reachable, then broken, then the user presses Ctrl-C.
func TestWatchDrawsEveryTwoSeconds(t *testing.T) {
	t.Parallel()
	f := func(rows func() int, want string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			ctx, ctrlC := context.WithCancel(t.Context())
			looks := 0
			look := func(_ context.Context, w io.Writer) error {
				looks++
				fmt.Fprintf(w, "look %d\nB\nC\n", looks)
				switch looks {
				case 2:
					return &cli.ExitError{Status: cli.ExitBroken, Err: errors.New("no node answers")}
				case 3:
					time.AfterFunc(time.Second, ctrlC)
					return exitOf(admin.Warned)
				}
				return nil
			}
			var b strings.Builder
			begin := time.Now()
			err := watch(ctx, screen{&b, rows}, look)
			if exit, ok := errors.AsType[*cli.ExitError](err); !ok || exit.Status != cli.ExitWarned || exit.Err != nil {
				t.Errorf("watch ends with %v, want the last status", err)
			}
			if took := time.Since(begin); looks != 3 || took != 2*watchInterval+time.Second {
				t.Errorf("%d looks in %s", looks, took)
			}
			if got := strings.ReplaceAll(b.String(), "\x1b[", "^"); got != want {
				t.Errorf("got\n%q, want\n%q", got, want)
			}
		})
	}
	f(nil, "2000-01-01T00:00:00Z\nlook 1\nB\nC\n\n2000-01-01T00:00:02Z\nlook 2\nB\nC\nfacet: no node answers\n\n2000-01-01T00:00:04Z\nlook 3\nB\nC\n\n")
	foot := func(second int) string { // synctest begins there
		at := time.Date(2000, 1, 1, 0, 0, second, 0, time.UTC).Local()
		return "every 2 s, last at " + at.Format(time.TimeOnly) + "; Ctrl-C ends it^K^J^?7h"
	}
	f(func() int { return 5 }, "^2J"+
		"^?7l^Hlook 1^K\r\nB^K\r\nC^K\r\n"+foot(0)+
		"^?7l^Hlook 2^K\r\n… 1 lines …^K\r\nC^K\r\nfacet: no node answers^K\r\n"+foot(2)+
		"^?7l^Hlook 3^K\r\nB^K\r\nC^K\r\n"+foot(4)+"\n")
}

func TestStatusTellsWhatItIsAskedFor(t *testing.T) {
	t.Parallel()
	exits(t, cli.ExitUsage, "exclude each other", "status", "--json", "--watch")
	exits(t, cli.ExitUsage, "exclude each other", "status", "-o", "json", "--watch")
	exits(t, cli.ExitUsage, "it is table or json", "status", "-o", "yaml")
	exits(t, cli.ExitFailed, "no cluster", "status", "-o", "table", "--dir", t.TempDir())
	exits(t, cli.ExitFailed, "no cluster", "status", "--dir", t.TempDir())
	exits(t, cli.ExitUsage, "belong together", "status", "--admin", "127.0.0.1:1")
	exits(t, 0, "It is 4 if a part of", "status", "--help")
}
