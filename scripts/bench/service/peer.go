package service

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"facet/engine"
	"facet/internal/id"
	"facet/router"
	"facet/scripts/bench/load"
)

// peerBreadthMax is the largest breadth that is tried.
const peerBreadthMax = 64

// peer is FAISS behind HTTP, with the templates of the gallery (peer.py). Its clients send a probe
// as it is, without a signature and TLS.
type peer struct {
	cmd     *exec.Cmd
	address string
	rows    map[id.Event]int // of the hits of the probes
	// breadth is the smallest with which the peer finds all hits that the service finds.
	breadth int
}

// openPeer starts the peer and waits until it is ready. It returns nil without an interpreter.
func (b *bench) openPeer(ctx context.Context) (_ *peer, err error) {
	if b.python == "" {
		return nil, nil
	}
	file := filepath.Join(b.shape.Dir, "peer.f32")
	defer func() { err = errors.Join(err, os.Remove(file)) }()
	p := &peer{rows: map[id.Event]int{}}
	if err := p.write(b, file); err != nil {
		return nil, err
	}
	folder := filepath.Join("scripts", "bench", "service")
	p.cmd = exec.CommandContext(ctx, b.python, filepath.Join(folder, "peer.py"), file, strconv.Itoa(b.gallery.Filled.Dim), strconv.Itoa(runtime.NumCPU())) //nolint:gosec // the interpreter is a flag
	p.cmd.Env = append(os.Environ(), "GLIBC_TUNABLES=glibc.malloc.hugetlb=1")
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start FAISS: %w", err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		p.address = net.JoinHostPort("127.0.0.1", strings.TrimSpace(line))
		err = p.widen(b.kernel.probes)
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("FAISS behind HTTP: %w", err)
	}
	return p, nil
}

// write writes the templates of the gallery, and notes the rows of the probes' hits.
func (p *peer) write(b *bench, file string) (err error) {
	wanted := map[id.Event]bool{}
	for _, probe := range b.kernel.probes {
		for _, h := range probe.want {
			wanted[h.Event] = true
		}
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w, row := bufio.NewWriter(f), 0
	put := func(e id.Event, t engine.Template) {
		if wanted[e] {
			p.rows[e] = row
		}
		row++
		_, _ = w.Write(floats(t)) // Flush returns the error
	}
	put(b.gallery.Event, b.face.Template)
	for _, part := range b.gallery.Filled.Shards {
		for e, t := range b.gallery.Filled.Rows(part, b.face.Template) {
			put(e.Event, t)
		}
	}
	return w.Flush()
}

func floats(t engine.Template) []byte {
	b := make([]byte, 0, 4*len(t))
	for _, x := range t {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// widen sets the breadth.
func (p *peer) widen(probes []probe) error {
	c, err := p.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	for p.breadth = 1; p.breadth <= peerBreadthMax; p.breadth *= 2 {
		all := true
		for _, probe := range probes {
			rows, err := c.search(probe.template)
			if err != nil {
				return err
			}
			for _, h := range probe.want {
				all = all && slices.Contains(rows, p.rows[h.Event])
			}
		}
		if all {
			return nil
		}
	}
	return fmt.Errorf("it misses hits when it compares %d times as many candidates again", peerBreadthMax)
}

// load loads the peer with n searches at once.
func (p *peer) load(ctx context.Context, b *bench, n int) (load.Result, error) {
	conns := make([]*peerConn, n)
	for i := range conns {
		c, err := p.dial()
		if err != nil {
			return load.Result{}, err
		}
		defer c.Close()
		conns[i] = c
	}
	return load.Closed(ctx, n, b.phase/aloneShare, func(worker, i int) error {
		_, err := conns[worker].search(b.kernel.probes[(worker*7+i)%len(b.kernel.probes)].template)
		return err
	})
}

// peerConn is a connection to the peer.
type peerConn struct {
	net.Conn
	of      *peer
	answers *bufio.Reader
}

func (p *peer) dial() (*peerConn, error) {
	c, err := net.Dial("tcp", p.address)
	if err != nil {
		return nil, err
	}
	return &peerConn{c, p, bufio.NewReader(c)}, nil
}

// search returns the best rows.
func (c *peerConn) search(t engine.Template) ([]int, error) {
	body := floats(t)
	head := fmt.Sprintf("POST /%d/%d HTTP/1.1\r\nHost: peer\r\nContent-Length: %d\r\n\r\n", router.SearchLimitDefault, c.of.breadth, len(body))
	if _, err := c.Write(append([]byte(head), body...)); err != nil {
		return nil, err
	}
	a, err := http.ReadResponse(c.answers, nil)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(a.Body)
	if err := errors.Join(err, a.Body.Close()); err != nil {
		return nil, err
	}
	var found struct {
		Rows []int `json:"rows"`
	}
	err = json.Unmarshal(text, &found)
	return found.Rows, err
}

// close ends the process.
func (p *peer) close() {
	if p != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}
