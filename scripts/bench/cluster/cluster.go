package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"facet/cmd/facet/config"
	"facet/cmd/facet/dev"
	"facet/engine"
	"facet/engine/models"
	"facet/internal/testkit"
	"facet/scripts/bench/machine"
)

// portrait has one face and 1.03 megapixels.
const portrait = "face_recognition/obama.jpg"

// Files has the paths of the program and of the files that set-up fetched.
type Files struct {
	Facet  string // the program
	Assets string // folder
	Model  string // name of the model pack; empty: the one that a new cluster gets
}

// Pack returns the folder of the model pack.
func (f Files) Pack() string {
	return filepath.Join(f.Assets, "packs", cmp.Or(f.Model, models.FoundingPack))
}

// Engine opens the face engine. With 0 workers it has one for each core.
func (f Files) Engine(workers int) (*engine.Engine, error) {
	return f.EngineOf(f.Pack(), workers)
}

// EngineOf is Engine with the pack in a folder.
func (f Files) EngineOf(folder string, workers int) (*engine.Engine, error) {
	pack, err := models.Open(folder)
	if err != nil {
		return nil, fmt.Errorf("%w: run make setup", err)
	}
	return engine.New(pack, engine.Config{Library: f.library(), Workers: workers})
}

func (f Files) library() string {
	return filepath.Join(f.Assets, "lib", filepath.Base(config.AssetsDefault().ONNXRuntime))
}

// Portrait reads the photo that benchmarks search with.
func (f Files) Portrait() ([]byte, error) {
	return os.ReadFile(filepath.Join(f.Assets, "photos", filepath.FromSlash(portrait)))
}

// Shape describes a cluster.
type Shape struct {
	Dir           string // folder that stays; empty: a temporary folder, which Close removes
	Nodes, Shards int    // 0 shards: as the cluster has, or facet dev's default
	Own           bool   // the nodes are processes of this program (ServeCommand), not of facet
	Pinned        bool   // facet runs on Core alone
	Core          int
	Memory        int // MiB that events may take on a node (facet's setting memory); 0: facet's default
}

// ServeCommand is the argument that makes this program run a node instead of a
// benchmark.
const ServeCommand = "serve"

// These environment variables contain the program that a node runs, its core, and its setting memory.
const (
	programVariable = "BENCH_PROGRAM"
	coreVariable    = "BENCH_CORE"
	memoryVariable  = "BENCH_MEMORY"
)

// Cluster is a running cluster.
type Cluster struct {
	*dev.Cluster
	dir string // the temporary folder, which Close removes
}

// Start creates or restarts a cluster and waits until all its nodes serve.
func (f Files) Start(ctx context.Context, s Shape) (c *Cluster, err error) {
	c = &Cluster{}
	if s.Dir == "" {
		if c.dir, err = os.MkdirTemp("", "bench"); err != nil {
			return nil, err
		}
		s.Dir = c.dir
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(c.dir))
		}
	}()
	cfg := dev.Config{Dir: s.Dir, Nodes: s.Nodes, Shards: s.Shards, Out: io.Discard}
	var err1, err2, err3, err4 error
	cfg.Assets.Models, err1 = filepath.Abs(f.Pack())
	cfg.Assets.ONNXRuntime, err2 = filepath.Abs(f.library())
	program, err3 := filepath.Abs(f.Facet)
	cfg.Binary, err4 = os.Executable()
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	switch {
	case s.Pinned || s.Memory > 0:
		err = errors.Join(os.Setenv(programVariable, program), os.Setenv(memoryVariable, strconv.Itoa(s.Memory)))
		if s.Pinned {
			err = errors.Join(err, os.Setenv(coreVariable, strconv.Itoa(s.Core)))
		}
	case !s.Own:
		cfg.Binary = program
	}
	if err == nil {
		c.Cluster, err = dev.Open(ctx, cfg)
	}
	return c, errors.Join(err, os.Unsetenv(programVariable), os.Unsetenv(coreVariable), os.Unsetenv(memoryVariable))
}

// ServeSet replaces this process by facet with the core and the setting memory that the environment
// names, if it names a program.
func ServeSet() error {
	program, ok := os.LookupEnv(programVariable)
	if !ok {
		return nil
	}
	args := append([]string{program}, os.Args[1:]...)
	if memory := os.Getenv(memoryVariable); memory != "0" {
		args = append(args, "--memory="+memory)
	}
	name, pinned := os.LookupEnv(coreVariable)
	if !pinned {
		return machine.Exec(program, args)
	}
	core, err := strconv.Atoi(name)
	if err != nil {
		return fmt.Errorf("read %s: %w", coreVariable, err)
	}
	return machine.ExecOn(core, program, args)
}

// Close stops the nodes.
func (c *Cluster) Close() error {
	err := c.Cluster.Close()
	if c.dir != "" {
		err = errors.Join(err, os.RemoveAll(c.dir))
	}
	return err
}

// Scrape reads and sums the metrics of all nodes of a cluster.
func Scrape(ctx context.Context, i dev.Info) (testkit.Figures, error) {
	var admins []string
	for _, n := range i.Nodes {
		admins = append(admins, n.Admin)
	}
	return testkit.Scrape(ctx, admins...)
}

// PIDs returns the process ids of the nodes.
func (c *Cluster) PIDs() (pids []int) {
	for _, n := range c.Info().Nodes {
		pids = append(pids, n.PID)
	}
	return pids
}
