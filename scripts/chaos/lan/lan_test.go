//go:build linux

package lan_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"facet/internal/must"
	"facet/scripts/chaos/lan"
)

// open returns a LAN with a server on host 1 that says hello on port 9.
func open(t *testing.T, hosts int) *lan.LAN {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root: run the tests as root")
	}
	l, err := lan.Open(hosts)
	must.Do(t, err)
	t.Cleanup(l.Close)
	return l
}

// greeter is the environment variable that makes the test binary a server.
const greeter = "FACET_LAN_GREETER"

func TestMain(m *testing.M) {
	if address := os.Getenv(greeter); address != "" {
		greet(address)
		return
	}
	os.Exit(m.Run())
}

func TestHostsReachEachOtherAsLinksPermit(t *testing.T) {
	l := open(t, 3)
	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), greeter+"="+lan.Address(1)+":9")
	must.Do(t, l.Start(1, server))
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	hello := func(timeout time.Duration) (string, time.Duration) {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		began := time.Now()
		for ctx.Err() == nil {
			conn, err := l.Dial(ctx, 0, lan.Address(1)+":9")
			if err != nil {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			_ = conn.SetDeadline(time.Now().Add(timeout))
			var b strings.Builder
			_, _ = copyAll(&b, conn)
			_ = conn.Close()
			return b.String(), time.Since(began)
		}
		return "", timeout
	}
	if got, _ := hello(time.Minute); got != "hello" {
		t.Fatalf("over a whole link: %q", got)
	}
	l.Set(1, 0, lan.Link{Delay: 60 * time.Millisecond})
	if got, took := hello(time.Minute); got != "hello" || took < 60*time.Millisecond {
		t.Errorf("over a slow link: %q after %s", got, took)
	}
	l.Set(1, 0, lan.Link{Cut: true}) // one direction: requests arrive, answers do not
	if got, _ := hello(300 * time.Millisecond); got != "" {
		t.Errorf("over a cut link: %q", got)
	}
	l.Heal()
	if got, _ := hello(time.Minute); got != "hello" {
		t.Errorf("over a healed link: %q", got)
	}
	l.Set(0, 1, lan.Link{Loss: .3})
	if got, _ := hello(time.Minute); got != "hello" {
		t.Errorf("over a bad link: %q", got)
	}
}
