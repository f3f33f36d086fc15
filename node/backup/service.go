package backup

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"facet/internal/id"
	"facet/node/audit/entry"
	"facet/node/audit/reading"
	"facet/node/bucket"
	"facet/node/loop"
	"facet/node/peer"
	"facet/node/replicas"
	"facet/node/wire"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/shard/seal"
)

// backupNameFormat is the time format of the name of a backup that was given no name.
const backupNameFormat = "20060102T150405Z"

// Replicas is the access to the groups on this node.
type Replicas interface {
	Meta() *metafsm.Machine
	MetaGroup() *raftfsm.Group
	Group(number id.Shard) (*raftfsm.Group, bool)
	Shard(number id.Shard) (*shardfsm.Machine, bool)
	Members(number id.Shard) []id.Member
	Ask(ctx context.Context, m id.Member, q replicas.Query) (replicas.Word, error)
}

// Records brings this node's replica of meta up to date, and reads audit logs (routing.Router).
type Records interface {
	SyncMeta(ctx context.Context) error
	reading.Service
}

// Peers calls other nodes.
type Peers interface {
	Call(ctx context.Context, to id.Member, method string, body []byte) ([]byte, error)
}

// Config configures the backups of a node.
type Config struct {
	Self    id.Member
	Name    string // of the node
	Version string // of the software
	Master  *seal.Master
	// To is the URL of the folder for scheduled backups. Meta's leader makes one every Every
	// and keeps the newest Keep.
	To    string
	Every time.Duration
	Keep  int
	// Serving returns why this node does not serve, or nil.
	Serving  func() error
	Replicas Replicas
	Records  Records
	Peers    Peers
	// Acted receives the ends of backups and restorations, for the cluster's audit log; it may be nil.
	Acted func(router.Act)
	Log   *slog.Logger
}

// Service makes, verifies and restores backups, one job at a time, and makes the scheduled
// ones. It is safe for concurrent use.
type Service struct {
	*loop.Loop
	cfg    Config
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu sync.Mutex // guards now, before and wanted
	// now is the last job and before is the job before it. A caller may ask for the outcome of
	// its job when a scheduled backup has already started after it.
	now, before wire.BackupProgress
	wanted      map[string]bool // attempts of this node to have parts written

	last atomic.Pointer[time.Time] // of Last
	plan atomic.Pointer[plan]      // of SetPlan
}

// plan says how often a backup is scheduled, and how many stay.
type plan struct {
	every time.Duration
	keep  int
}

// Interval returns the time between scheduled backups, 0 without a schedule.
func (s *Service) Interval() time.Duration { return s.plan.Load().every }

// Plan returns the time between scheduled backups, 0 without a schedule, and how many of them stay.
func (s *Service) Plan() (every time.Duration, keep int) {
	p := s.plan.Load()
	return p.every, p.keep
}

// SetPlan changes Config.Every and Config.Keep. It is safe for concurrent use.
func (s *Service) SetPlan(every time.Duration, keep int) { s.plan.Store(&plan{every, keep}) }

// Open returns the service of a node. The caller closes it.
func Open(c Config) *Service {
	if c.Acted == nil {
		c.Acted = func(router.Act) {}
	}
	s := &Service{Loop: loop.New("backup"), cfg: c, wanted: map[string]bool{}}
	s.SetPlan(c.Every, c.Keep)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close cancels the present job and waits for its end.
func (s *Service) Close() error {
	s.mu.Lock()
	s.cancel() // begin starts nothing from now on
	s.mu.Unlock()
	s.work.Wait()
	return nil
}

// Methods returns the handlers of the requests that the service answers to other nodes.
func (s *Service) Methods() map[string]peer.Handler {
	list := map[string]peer.Handler{methodWanted: s.serveWanted}
	for _, method := range []string{methodPart, methodPropose, methodSums} {
		list[method] = func(ctx context.Context, body []byte) ([]byte, error) {
			answer, err := s.serveCopies(ctx, method, body)
			if err != nil {
				return nil, peer.Fault{Err: err}
			}
			return answer, nil
		}
	}
	return list
}

// StartBackup starts to make a backup. It returns false if another job runs.
func (s *Service) StartBackup(q wire.BackupOrder) bool {
	q.Name = cmp.Or(q.Name, time.Now().UTC().Format(backupNameFormat))
	return s.beginBackup("backup", recordedBackup(s, q.To, q.Name, func(ctx context.Context, p progress) (Manifest, error) { return s.Backup(ctx, q, p) }))
}

// StartVerify starts to verify a backup. It returns false if another job runs.
func (s *Service) StartVerify(q wire.BackupQuery) bool {
	return s.beginBackup("verify", func(ctx context.Context, p progress) (Manifest, error) { return s.Verify(ctx, q, p) })
}

// StartRestore starts to restore a backup into this cluster. It returns false if another job
// runs.
func (s *Service) StartRestore(q wire.RestoreOrder) bool {
	return s.begin("restore", func(ctx context.Context, p progress) (*wire.BackupResult, *Restored, error) {
		e := end{operation: entry.OperationRestore, folder: q.From, name: q.Name, gallery: q.Gallery, began: time.Now()}
		done, err := s.Restore(ctx, q, p)
		e.name, e.events = cmp.Or(done.Backup, q.Name), done.Active
		if err == nil {
			e.former = done.Former
		}
		s.record(e, err)
		return nil, &done, err
	})
}

// beginBackup is begin for a job whose result is a backup.
func (s *Service) beginBackup(what string, f func(context.Context, progress) (Manifest, error)) bool {
	return s.begin(what, func(ctx context.Context, p progress) (*wire.BackupResult, *Restored, error) {
		m, err := f(ctx, p)
		return &wire.BackupResult{Head: m.Head, Digest: m.Digest, Events: m.Active()}, nil, err
	})
}

// Target returns this cluster as the target of a restoration.
func (s *Service) Target() Target { return copies{s} }

// List returns the backups in a folder.
func (s *Service) List(ctx context.Context, q wire.BackupQuery) ([]Listed, error) {
	return inFolder(ctx, bucket.OpenFolder, q.From, func(f *bucket.Folder) ([]Listed, error) { return List(ctx, f) })
}

// Erasures returns the subjects that a backup knows as erased (Deleted).
func (s *Service) Erasures(ctx context.Context, q wire.BackupQuery) ([]Erasure, error) {
	return inBackup(ctx, s, q, func(f *bucket.Folder, name string, master *seal.Master) ([]Erasure, error) {
		return Deleted(ctx, f, name, master)
	})
}

// inFolder calls do with the folder at url, as open opens it.
func inFolder[T any](ctx context.Context, open bucket.Opener, url string, do func(*bucket.Folder) (T, error)) (out T, err error) {
	f, err := open(ctx, url)
	if err != nil {
		return out, err
	}
	defer func() { _ = f.Close() }() // do has closed what it wrote
	return do(f)
}

// inBackup calls do with the folder, name and cluster key of the backup that q names. An
// empty name is the newest backup, an empty key this cluster's.
func inBackup[T any](ctx context.Context, s *Service, q wire.BackupQuery, do func(*bucket.Folder, string, *seal.Master) (T, error)) (T, error) {
	return inFolder(ctx, bucket.OpenFolder, q.From, func(f *bucket.Folder) (out T, err error) {
		master := s.cfg.Master
		if len(q.Key) > 0 {
			master, err = seal.NewMaster(q.Key)
		}
		if err == nil && q.Name == "" {
			q.Name, err = Newest(ctx, f)
		}
		if err != nil {
			return out, err
		}
		return do(f, q.Name, master)
	})
}

// progress receives how many of a job's parts are done.
type progress = func(done, total int)

// begin starts a job on a goroutine of the service. It returns false if another one runs.
func (s *Service) begin(what string, f func(context.Context, progress) (*wire.BackupResult, *Restored, error)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.Running || s.ctx.Err() != nil {
		return false
	}
	s.before, s.now = s.now, wire.BackupProgress{ID: rand.Text(), What: what, Running: true, Began: time.Now().UTC()}
	s.work.Go(func() { // ends with s.ctx
		result, restored, err := f(s.ctx, func(done, total int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.now.Done, s.now.Total = done, total
		})
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now.Running, s.now.Ended = false, time.Now().UTC()
		s.now.Backup, s.now.Restored = result, restored
		if err != nil {
			s.now.Error, s.now.Backup, s.now.Restored = err.Error(), nil, nil
			s.cfg.Log.Error("a backup job failed", "job", what, "err", err)
			return
		}
		s.cfg.Log.Info("a backup job is done", "job", what, "ms", time.Since(s.now.Began).Milliseconds())
	})
	return true
}

// Progress returns the progress of the last job. If job is the id of the job before it,
// Progress returns that one's progress.
func (s *Service) Progress(job string) wire.BackupProgress {
	s.mu.Lock()
	defer s.mu.Unlock()
	if job != "" && job == s.before.ID {
		return s.before
	}
	return s.now
}

// Verify reads and checks all of a backup.
func (s *Service) Verify(ctx context.Context, q wire.BackupQuery, p progress) (Manifest, error) {
	return inBackup(ctx, s, q, func(f *bucket.Folder, name string, master *seal.Master) (Manifest, error) {
		return Verify(ctx, f, name, master, p)
	})
}

// Backup makes a backup. q.Galleries has names (TENANT/GALLERY) or ids.
func (s *Service) Backup(ctx context.Context, q wire.BackupOrder, p progress) (Manifest, error) {
	if r, ok := s.cfg.Replicas.Meta().Restoration(); ok && !r.Done {
		return Manifest{}, router.Errorf(router.InvalidRequest, "", "a backup is being restored into this cluster: end that first")
	}
	if err := s.cfg.Records.SyncMeta(ctx); err != nil {
		return Manifest{}, err
	}
	galleries, err := s.galleries(q.Galleries)
	if err != nil {
		return Manifest{}, err
	}
	if q.Name == "" {
		q.Name = time.Now().UTC().Format(backupNameFormat)
	}
	return Run(ctx, Options{
		URL: q.To, Name: q.Name, Galleries: galleries, Version: s.cfg.Version, Master: s.cfg.Master, Progress: p,
	}, copies{s})
}

// galleries returns the ids of galleries that are given by id or by TENANT/GALLERY.
func (s *Service) galleries(wanted []string) ([]id.Gallery, error) {
	var list []id.Gallery
	for _, w := range wanted {
		found := len(list)
		for _, t := range s.cfg.Replicas.Meta().Tenants() {
			for _, g := range s.cfg.Replicas.Meta().Galleries(t.ID) {
				if w == g.ID.String() || w == t.Name+"/"+g.Name {
					list = append(list, g.ID)
				}
			}
		}
		if len(list) == found {
			return nil, router.Errorf(router.NotFound, "", "there is no gallery %q (TENANT/GALLERY, or an id)", w)
		}
	}
	return list, nil
}

// Restore restores a backup into this cluster.
func (s *Service) Restore(ctx context.Context, q wire.RestoreOrder, p progress) (Restored, error) {
	return inBackup(ctx, s, q.BackupQuery, func(_ *bucket.Folder, name string, from *seal.Master) (Restored, error) {
		return Restore(ctx, RestoreOptions{
			URL: q.From, Name: name, Gallery: q.Gallery, From: from, To: s.cfg.Master, Erased: q.Erasures, WithErased: q.WithErased, Progress: p,
		}, copies{s})
	})
}
