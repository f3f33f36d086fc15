package node_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"facet/node/nodetest"
)

// logLines is a log that several goroutines write.
type logLines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// with returns the lines that have all of the words.
func (l *logLines) with(words ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.matching(words)
}

// take returns the lines that have a word, and forgets all.
func (l *logLines) take(word string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.b.Reset()
	return l.matching([]string{word})
}

func (l *logLines) matching(words []string) (list []string) {
	for line := range strings.Lines(l.b.String()) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			list = append(list, line)
		}
	}
	return list
}

// TestRequestIDReachesAllLogs: the client gets it, the node that was
// asked logs it, and so does each other node that did a part.
func TestRequestIDReachesAllLogs(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		logs := &logLines{}
		c := nodetest.Start(t, nodetest.Options{
			SlotsPerShard: 25, // four shards for a gallery of 100
			Log:           slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		client := c.Client("acme")
		gallery(t, client, c.Nodes[0].URL, "staff", 100)
		helpers := map[string]bool{}
		within(t, 20*time.Second, "leaders on two other nodes help with a search", func() bool {
			client.Call(t, c.Nodes[0].URL, "POST", "/v1.1/subjects", map[string]any{"face": nodetest.Image("person")})
			a := client.Call(t, c.Nodes[0].URL, "POST", "/v1.1/face/search", map[string]any{"probe": nodetest.Image("person")})
			request := a.Header.Get("X-Request-Id")
			if len(request) != 32 {
				t.Fatalf("the answer has the id %q", request)
			}
			within(t, 5*time.Second, "the node that was asked logs the request", func() bool {
				return len(logs.with("node=n1", `msg="request answered"`, "req="+request)) == 1
			})
			for _, n := range []string{"n2", "n3"} {
				if len(logs.with("node="+n, `msg="peer answered"`, "method=shard.search", "req="+request)) > 0 {
					helpers[n] = true
				}
			}
			return len(helpers) == 2
		})
	})
}
