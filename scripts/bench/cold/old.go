package cold

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"facet/engine/score"
	"facet/scripts/bench/machine"
)

// commit is the last one whose kernel kept all exact rows in memory.
const commit = "2f6d1c7"

//go:embed peer.go
var peerSource []byte

// old is a process with the kernel of the commit.
type old struct {
	*machine.Peer
	dir string
}

// set, ask and answer are those of peer.go.
type set struct {
	Rows     string
	Dim      int
	Points   []score.Point
	Spectrum []float64
}

type ask struct {
	Probes                     string
	Limit, Threshold, Together int
}

type answer struct {
	MS   float64
	Hits [][][2]int
}

// buildOld compiles peer.go in a checkout of the commit below dir, and returns the program.
func buildOld(ctx context.Context, dir string) (program string, err error) {
	if err := exec.CommandContext(ctx, "git", "cat-file", "-e", commit+"^{commit}").Run(); err != nil {
		return "", fmt.Errorf("this clone has no commit %s, whose kernel is the peer: run git fetch --unshallow", commit)
	}
	tree := filepath.Join(dir, "old")
	peer := filepath.Join(tree, "cmd", "coldpeer")
	if err := os.MkdirAll(peer, 0o700); err != nil {
		return "", err
	}
	archive, tar := exec.CommandContext(ctx, "git", "archive", commit), exec.CommandContext(ctx, "tar", "-x", "-C", tree)
	tar.Stdin, err = archive.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := errors.Join(archive.Start(), tar.Run(), archive.Wait()); err != nil {
		return "", fmt.Errorf("check commit %s out: %w", commit, err)
	}
	if err := os.WriteFile(filepath.Join(peer, "peer.go"), peerSource, 0o600); err != nil {
		return "", err
	}
	program = filepath.Join(dir, "coldpeer")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, filepath.Join(peer, "peer.go"))
	build.Dir, build.Stderr = tree, os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("compile the kernel of commit %s: %w", commit, err)
	}
	return program, os.RemoveAll(tree)
}

// startOld starts the program and waits until it has the rows.
func startOld(ctx context.Context, program, dir string, s set) (*old, error) {
	p, err := machine.StartPeer("the kernel of commit "+commit, exec.CommandContext(ctx, program))
	if err != nil {
		return nil, err
	}
	if err := p.Ask(s, &answer{}); err != nil {
		p.Close()
		return nil, err
	}
	return &old{p, dir}, nil
}

// search searches with all probes.
func (o *old) search(_ context.Context, probes []float32, k kind, together int) (a answer, err error) {
	file := filepath.Join(o.dir, "probes.f32")
	if err := os.WriteFile(file, bytesOf(probes), 0o600); err != nil {
		return a, err
	}
	return a, o.Ask(ask{file, k.limit, k.threshold, together}, &a)
}
