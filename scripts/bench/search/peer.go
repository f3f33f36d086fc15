package search

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"facet/scripts/bench/machine"
)

// peer is a process of peers.py that has loaded the rows of a set.
type peer struct {
	*machine.Peer
	name  string
	built built
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
	of, err := machine.StartPeer(name, cmd)
	if err != nil {
		return nil, err
	}
	p := &peer{Peer: of, name: name, file: filepath.Join(o.dir, "probes.f32")}
	err = p.Ask(map[string]any{
		"rows": s.file, "n": len(s.rows) / s.dim, "dim": s.dim, "index": name, "dir": o.dir, "basis": s.basis, "cols": s.cols,
		"key": fmt.Sprintf("%s-%s-%d-%d", name, s.name, s.dim, len(s.rows)/s.dim),
	}, &p.built)
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
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
	err = p.Ask(map[string]any{"probes": p.file, "k": a.limit, "batch": a.batch, "breadth": breadth}, &answer)
	return answer.MS, answer.IDs, err
}
