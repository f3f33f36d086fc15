package search

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// peer is a process of peers.py that has loaded the rows of a set.
type peer struct {
	name  string
	built built
	cmd   *exec.Cmd
	in    *json.Encoder
	out   *bufio.Reader
	file  string // for probes
}

// built is the cost of making a peer searchable.
type built struct {
	Build float64 `json:"build"` // CPU seconds
	Bytes float64 `json:"bytes"` // of one template
}

// newPeer starts a peer. It keeps in the folder what takes long to build.
func newPeer(ctx context.Context, o options, s *set, name string) (*peer, error) {
	cmd := exec.CommandContext(ctx, o.python, filepath.Join("scripts", "bench", "search", "peers.py"))
	cmd.Env = append(os.Environ(), "GLIBC_TUNABLES=glibc.malloc.hugetlb=1", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1")
	if here() == avx2 { // the same processor for all
		cmd.Env = append(cmd.Env, "FAISS_OPT_LEVEL=avx2", "OPENBLAS_CORETYPE=Haswell")
	}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &peer{name: name, cmd: cmd, in: json.NewEncoder(in), out: bufio.NewReader(out), file: filepath.Join(o.dir, "probes.f32")}
	err = p.ask(map[string]any{
		"rows": s.file, "n": len(s.rows) / s.dim, "dim": s.dim, "index": name, "dir": o.dir, "basis": s.basis, "cols": s.cols,
		"key": fmt.Sprintf("%s-%s-%d-%d", name, s.name, s.dim, len(s.rows)/s.dim),
	}, &p.built)
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *peer) ask(question, answer any) error {
	if err := p.in.Encode(question); err != nil {
		return fmt.Errorf("ask %s: %w", p.name, err)
	}
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("answer of %s: %w", p.name, err)
	}
	return json.Unmarshal(line, answer)
}

// time searches with all probes. For each batch it returns the time of one probe.
// breadth is the breadth of an approximate search.
func (p *peer) time(probes []float32, a ask, breadth int) (ms []float64, ids [][]int, err error) {
	if err := os.WriteFile(p.file, bytesOf(probes), 0o600); err != nil {
		return nil, nil, err
	}
	var answer struct {
		MS  []float64 `json:"ms"`
		IDs [][]int   `json:"ids"`
	}
	err = p.ask(map[string]any{"probes": p.file, "k": a.limit, "batch": a.batch, "breadth": breadth}, &answer)
	return answer.MS, answer.IDs, err
}

// close ends the process. All its answers have been read.
func (p *peer) close() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}
