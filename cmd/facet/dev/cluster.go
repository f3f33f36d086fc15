package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/authority"
	"facet/cmd/facet/config"
	"facet/cmd/facet/process"
	"facet/internal/id"
	"facet/node/limits"
	"facet/node/sigv4"
)

// Defaults of a new cluster.
const (
	NodesDefault  = 3
	ShardsDefault = 4
	tenantName    = "dev"
	tenantTries   = 10

	serveTimeout  = 2 * time.Minute
	readyInterval = 100 * time.Millisecond
	watchInterval = 250 * time.Millisecond
	renewInterval = 12 * time.Hour
	// stopGrace is how long a node may take to hand over its leaderships and close.
	stopGrace = 20 * time.Second
)

// Config describes the cluster to run.
type Config struct {
	Dir string
	// Nodes and Shards are the cluster's shape. 0 means the shape with which it was
	// founded, or the default for a new one. Another number than at the founding is
	// an error.
	Nodes, Shards int
	// Binary is the facet that the nodes run.
	Binary string
	Assets config.Assets
	// Out gets messages for a person, one line at a time. io.Discard drops them.
	Out io.Writer
}

// Cluster is a running cluster. It is safe for concurrent use.
type Cluster struct {
	cfg       Config
	f         folder
	state     *state
	ids       map[string]id.Node
	authority *authority.Folder
	client    *admin.Client

	lock    *process.PIDFile
	starter *process.Starter
	members []*member
	stop    context.CancelFunc // ends the goroutines of wg
	wg      sync.WaitGroup
	reapers sync.WaitGroup // one goroutine for each child; ends with the child
	closing sync.Once
	failure error // of Close

	// mu guards Out, the members' pid and dev.json. It is held while these are
	// written.
	mu sync.Mutex
}

// Open creates or continues the cluster in cfg.Dir. It returns when all its nodes
// are ready and dev.json is written.
func Open(ctx context.Context, cfg Config) (*Cluster, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", cfg.Dir, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the cluster's folder: %w", err)
	}
	c := &Cluster{cfg: cfg, f: folder(dir), stop: func() {}}
	if err := mustBeOurs(c.f, cfg); err != nil {
		return nil, err
	}
	if c.lock, err = lock(c.f, cfg.Dir); err != nil {
		return nil, err
	}
	c.starter = process.OpenStarter()
	if err := c.open(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// lock locks the folder, which the user calls dir, for this process.
func lock(f folder, dir string) (*process.PIDFile, error) {
	l, err := process.Lock(f.lock())
	if running, ok := errors.AsType[*process.RunningError](err); ok {
		return nil, fmt.Errorf("facet dev runs on %s already as process %d: stop that first", dir, running.PID)
	}
	return l, err
}

// mustBeOurs checks the folder before the lock is taken, so that no foreign folder
// gets a lock.
func mustBeOurs(f folder, cfg Config) error {
	s, err := readState(f)
	if err != nil {
		return err
	}
	_, err = shape(s, cfg)
	return err
}

// nodes returns "1 node" or the like.
func nodes(n int) string {
	if n == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", n)
}

func (c *Cluster) open(ctx context.Context) error {
	if err := c.prepare(); err != nil {
		return err
	}
	// The processes must outlive ctx, which may be a deadline: Close ends them.
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	c.say("starting %s in %s", nodes(len(c.members)), c.cfg.Dir)
	c.warnOfDisk()
	for _, m := range c.members {
		if err := c.start(m); err != nil {
			return err
		}
	}
	if err := c.waitReady(ctx); err != nil {
		return err
	}
	if err := c.ensureTenant(ctx); err != nil {
		return err
	}
	if err := c.ensureCurl(); err != nil {
		return err
	}
	if err := c.writeInfo(); err != nil {
		return err
	}
	for _, m := range c.members {
		c.wg.Go(func() { c.watch(life, m) })
	}
	c.wg.Go(func() { c.renew(life) })
	return nil
}

// warnOfDisk says so if the nodes will refuse registrations for lack of disk. A disk that can't be
// measured is the nodes' to report.
func (c *Cluster) warnOfDisk() {
	if free, reserve, err := limits.Room(string(c.f)); err == nil && free < reserve {
		c.say("%s", diskAdvice(c.cfg.Dir, free, reserve))
	}
}

// diskAdvice says what a disk with too few bytes free means, in lines of a terminal.
func diskAdvice(dir string, free, reserve uint64) string {
	return fmt.Sprintf("the disk of %s is nearly full, with %d MiB free: the nodes will refuse registrations\n"+
		"  make room until %d MiB are free, or choose a --dir on another disk", dir, free>>20, reserve>>20)
}

// prepare writes everything to disk that the nodes need.
func (c *Cluster) prepare() error {
	s, err := readState(c.f)
	if err != nil {
		return err
	}
	if c.state, err = shape(s, c.cfg); err != nil {
		return err
	}
	if err := dropInfo(c.f); err != nil {
		return err
	}
	for _, n := range c.state.Nodes { // left by a dev that was killed
		if err := process.Stop(c.f.pidFile(n.Name), stopGrace); err != nil {
			return err
		}
	}
	replaced, err := settlePorts(c.state)
	if err != nil {
		return err
	}
	for _, r := range replaced {
		c.say("%s", r)
	}
	if err := c.state.save(c.f); err != nil {
		return err
	}
	if c.ids, err = identities(c.f, c.state); err != nil {
		return err
	}
	if c.authority, err = ensureCertificates(c.f, c.ids); err != nil {
		return err
	}
	if err := writeConfigs(c.f, c.state, c.authority, c.cfg.Assets); err != nil {
		return err
	}
	for _, n := range c.state.Nodes {
		c.members = append(c.members, &member{nodeState: n, exited: make(chan struct{})})
	}
	target, err := Admin(string(c.f))
	if err != nil {
		return err
	}
	c.client, err = admin.NewClient(target)
	return err
}

// shape returns the state to continue with: s, or a new one when there is none.
func shape(s *state, cfg Config) (*state, error) {
	if s == nil {
		s = &state{Format: stateFormat, Shards: ShardsDefault}
		if cfg.Shards != 0 {
			s.Shards = cfg.Shards
		}
		nodes := NodesDefault
		if cfg.Nodes != 0 {
			nodes = cfg.Nodes
		}
		if nodes < 1 || nodes > nodesMax {
			return nil, fmt.Errorf("--nodes is 1 to %d, not %d", nodesMax, nodes)
		}
		for i := range nodes {
			s.Nodes = append(s.Nodes, nodeState{Name: nodeName(i)})
		}
		return s, nil
	}
	if cfg.Nodes != 0 && cfg.Nodes != len(s.Nodes) {
		return nil, fmt.Errorf("the cluster in %s has %d nodes: start it without --nodes %d, or choose another --dir", cfg.Dir, len(s.Nodes), cfg.Nodes)
	}
	if cfg.Shards != 0 && cfg.Shards != s.Shards {
		return nil, fmt.Errorf("the cluster in %s has %d shards: start it without --shards %d, or choose another --dir", cfg.Dir, s.Shards, cfg.Shards)
	}
	return s, nil
}

// ensureTenant creates the tenant at the first start. If its name is taken, an
// earlier start ended after creating the tenant and before recording the keys.
func (c *Cluster) ensureTenant(ctx context.Context) error {
	if c.state.Tenant != nil {
		return c.ensureBucket()
	}
	for i := range tenantTries {
		name := tenantName
		if i > 0 {
			name += "-" + strconv.Itoa(i+1)
		}
		keys, err := c.client.CreateTenant(ctx, name)
		if taken, ok := errors.AsType[*admin.AnswerError](err); ok && taken.Status == http.StatusConflict {
			continue
		}
		if err != nil {
			return fmt.Errorf("create the tenant: %w", err)
		}
		c.state.Tenant = &tenant{Name: name, ID: keys.Tenant.String(), AccessKey: keys.AccessKey, SecretKey: keys.SecretKey}
		return errors.Join(c.state.save(c.f), c.ensureBucket())
	}
	return fmt.Errorf("create the tenant: %d names are taken", tenantTries)
}

// ensureBucket creates the tenant's folder of the object store.
func (c *Cluster) ensureBucket() error {
	dir := c.bucketDir()
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the tenant's folder of the object store: %w", err)
	}
	return nil
}

// bucketDir returns the tenant's folder, or "" when the tenant's id was not
// recorded.
func (c *Cluster) bucketDir() string {
	if c.state.Tenant.ID == "" {
		return ""
	}
	return filepath.Join(c.f.bucket(), c.state.Tenant.ID)
}

// Info returns how to reach the cluster.
func (c *Cluster) Info() Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.infoLocked()
}

func (c *Cluster) infoLocked() Info {
	i := Info{
		CAFile:    c.authority.CA(),
		AccessKey: c.state.Tenant.AccessKey, SecretKey: c.state.Tenant.SecretKey,
		Region: sigv4.RegionDefault, Service: sigv4.ServiceDefault, BucketDir: c.bucketDir(),
	}
	for _, m := range c.members {
		url := "https://" + m.Public
		i.BaseURLs = append(i.BaseURLs, url)
		i.PortalURLs = append(i.PortalURLs, url)
		i.Nodes = append(i.Nodes, NodeInfo{
			ID: c.ids[m.Name], PID: m.pid, URL: url, Dir: c.f.data(m.Name), Cmd: c.command(m.Name),
			Name: m.Name, Admin: m.Admin, Log: c.f.log(m.Name),
		})
	}
	return i
}

// Admin returns a client of the cluster's admin ports.
func (c *Cluster) Admin() *admin.Client { return c.client }

func (c *Cluster) writeInfo() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return writeJSON(c.f.info(), c.infoLocked())
}

// renew checks twice a day whether certificates must be renewed. Nodes notice new
// files by themselves.
func (c *Cluster) renew(ctx context.Context) {
	tick := time.NewTicker(renewInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := ensureCertificates(c.f, c.ids); err != nil {
			c.say("certificates could not be renewed, facet dev tries again in 12 hours: %v", err)
		}
	}
}

// say prints one line for a person.
func (c *Cluster) say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.cfg.Out, format+"\n", args...)
}

// Close removes dev.json and stops all nodes, also those that another process
// started. It waits for them and may be called more than once.
func (c *Cluster) Close() error {
	c.closing.Do(func() {
		c.failure = dropInfo(c.f)
		c.stop()
		c.wg.Wait()
		errs := make([]error, len(c.members))
		var stopping sync.WaitGroup
		for i, m := range c.members {
			stopping.Go(func() { errs[i] = c.end(m) })
		}
		stopping.Wait()
		c.reapers.Wait()
		c.starter.Close()
		c.failure = errors.Join(c.failure, errors.Join(errs...), c.lock.Close())
	})
	return c.failure
}
