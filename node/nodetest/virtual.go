package nodetest

import (
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/valyala/fasthttp"

	"facet/node/transport/memnet"
)

const (
	// lastTimers is how long the last timers of stopped servers and clients run.
	lastTimers = 2 * time.Minute
	// gcPercent is how much a heap grows between two collections: that of a bubble is small and
	// changes fast.
	gcPercent = 300
	// requestTime is what a request costs in a bubble beside the network's delays, so that time
	// passes for a client without pauses.
	requestTime = time.Millisecond
	// ClientHost is the host of the clients in a bubble.
	ClientHost = "10.0.0.100"
)

// networks holds the network of each bubble, by the bubble's test.
var networks sync.Map // of testing.TB to *memnet.Network

// Virtual runs f in a bubble of virtual time, beside other tests. All clusters that f starts share
// one network in memory. f must not call t.Run.
func Virtual(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	Bubble(t, 1, f)
}

// Bubble is Virtual for a test that runs more than one bubble. seed decides which packets of the
// network get lost.
func Bubble(t *testing.T, seed uint64, f func(t *testing.T)) {
	t.Helper()
	warm()
	synctest.Test(t, func(t *testing.T) {
		networks.Store(t, memnet.New(seed))
		t.Cleanup(func() {
			networks.Delete(t)
			time.Sleep(lastTimers)
		})
		f(t)
	})
}

// Run runs f in a bubble of virtual time with a cluster of its own, as Virtual and Start do.
func Run(t *testing.T, o Options, f func(t *testing.T, c *Cluster)) {
	t.Helper()
	Virtual(t, func(t *testing.T) {
		t.Helper()
		f(t, Start(t, o))
	})
}

// Network returns the network of the bubble of a test.
func Network(t *testing.T) *memnet.Network {
	network, _ := networks.Load(t)
	return network.(*memnet.Network)
}

// warm serves one request outside of bubbles. The first server of a process starts goroutines
// that never end, and a bubble would wait for them. It also makes collections rarer.
var warm = sync.OnceFunc(func() {
	debug.SetGCPercent(gcPercent)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic("listen: " + err.Error())
	}
	server := &fasthttp.Server{Handler: func(*fasthttp.RequestCtx) {}}
	go func() { _ = server.Serve(l) }()
	defer func() { _ = server.Shutdown() }()
	res, err := http.Get("http://" + l.Addr().String())
	if err != nil {
		panic("ask the first server: " + err.Error())
	}
	_ = res.Body.Close()
})

// Step runs a part of a test in a bubble, where t.Run can't be called.
func Step(t *testing.T, name string, f func(t *testing.T)) {
	t.Helper()
	t.Log(name)
	f(t)
}
