package backup

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"facet/internal/id"
	"facet/node/bucket"
	"facet/node/loop"
	"facet/node/peer"
	"facet/node/wire"
	"facet/raftfsm"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/shard/seal"
)

// backupNameFormat is the name of a backup that was given none: its time.
const backupNameFormat = "20060102T150405Z"

// Replicas are the groups that live on this node.
type Replicas interface {
	Meta() *metafsm.Machine
	MetaGroup() *raftfsm.Group
	Group(number id.Shard) (*raftfsm.Group, bool)
	Shard(number id.Shard) (*shardfsm.Machine, bool)
	Members(number id.Shard) []id.Member
}

// Records brings the replica of meta up to date (router.Router).
type Records interface {
	SyncMeta(ctx context.Context) error
}

// Peers calls other nodes.
type Peers interface {
	Call(ctx context.Context, to id.Member, method string, body []byte) ([]byte, error)
}

// Config is what the backups of a node need.
type Config struct {
	Self    id.Member
	Version string // of the software
	Master  *seal.Master
	// To is the URL of a folder to which meta's leader makes a backup each Every, of which
	// the newest Keep stay.
	To    string
	Every time.Duration
	Keep  int
	// Serving returns what keeps this node from serving, or nil.
	Serving  func() error
	Replicas Replicas
	Records  Records
	Peers    Peers
	Log      *slog.Logger
}

// Service makes, verifies and restores backups, one thing at a time, and makes those that
// are due by the clock. Its methods are safe for concurrent use.
type Service struct {
	*loop.Loop
	cfg    Config
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu sync.Mutex // guards now and before
	// before is the thing before now: who waits for it may ask when a scheduled one has
	// begun.
	now, before wire.BackupProgress
}

// Open returns the backups of a node. Close ends what they do.
func Open(c Config) *Service {
	s := &Service{Loop: loop.New("backup"), cfg: c}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close ends what is being done, and waits for its end.
func (s *Service) Close() error {
	s.mu.Lock()
	s.cancel() // nothing begins from now on
	s.mu.Unlock()
	s.work.Wait()
	return nil
}

// Methods are the requests of other nodes that the backups answer.
func (s *Service) Methods() map[string]func(context.Context, []byte) ([]byte, error) {
	list := map[string]func(context.Context, []byte) ([]byte, error){}
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

// StartBackup starts a backup, and reports whether it did: nothing else is being done.
func (s *Service) StartBackup(q wire.BackupOrder) bool {
	return s.begin("backup", func(ctx context.Context, p func(int, int)) (*wire.BackupResult, *Restored, error) {
		m, err := s.Backup(ctx, q, p)
		return result(m), nil, err
	})
}

// StartVerify starts to read all of a backup, as StartBackup.
func (s *Service) StartVerify(q wire.BackupQuery) bool {
	return s.begin("verify", func(ctx context.Context, p func(int, int)) (*wire.BackupResult, *Restored, error) {
		m, err := s.Verify(ctx, q, p)
		return result(m), nil, err
	})
}

// StartRestore starts to restore a backup into this cluster, as StartBackup.
func (s *Service) StartRestore(q wire.RestoreOrder) bool {
	return s.begin("restore", func(ctx context.Context, p func(int, int)) (*wire.BackupResult, *Restored, error) {
		done, err := s.Restore(ctx, q, p)
		return nil, &done, err
	})
}

func result(m Manifest) *wire.BackupResult {
	return &wire.BackupResult{Head: m.Head, Digest: m.Digest, Events: m.Active()}
}

// Target returns this cluster as a restoration sees it.
func (s *Service) Target() Target { return copies{s} }

// List returns the backups in a folder.
func (s *Service) List(ctx context.Context, q wire.BackupQuery) ([]Listed, error) {
	return inFolder(ctx, q, func(f *bucket.Folder) ([]Listed, error) { return List(ctx, f) })
}

// Erasures returns the subjects that a backup knows to be erased.
func (s *Service) Erasures(ctx context.Context, q wire.BackupQuery) ([]Erasure, error) {
	return inFolder(ctx, q, func(f *bucket.Folder) ([]Erasure, error) {
		master, err := s.masterOf(q.Key)
		if err == nil && q.Name == "" {
			q.Name, err = Newest(ctx, f)
		}
		if err != nil {
			return nil, err
		}
		return Deleted(ctx, f, q.Name, master)
	})
}

func inFolder[T any](ctx context.Context, q wire.BackupQuery, do func(*bucket.Folder) (T, error)) (out T, err error) {
	f, err := bucket.OpenFolder(ctx, q.From)
	if err != nil {
		return out, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	return do(f)
}

// begin starts a thing on a goroutine of the service, unless one runs.
func (s *Service) begin(what string, f func(ctx context.Context, p func(done, total int)) (*wire.BackupResult, *Restored, error)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now.Running || s.ctx.Err() != nil {
		return false
	}
	s.before, s.now = s.now, wire.BackupProgress{ID: rand.Text(), What: what, Running: true, Began: time.Now().UTC()}
	s.work.Go(func() { // ends with s.ctx
		result, restored, err := f(s.ctx, s.progress)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now.Running, s.now.Ended = false, time.Now().UTC()
		s.now.Backup, s.now.Restored = result, restored
		if err != nil {
			s.now.Error, s.now.Backup, s.now.Restored = err.Error(), nil, nil
			s.cfg.Log.Error("it did not succeed", "job", what, "err", err)
			return
		}
		s.cfg.Log.Info("it is done", "job", what, "ms", time.Since(s.now.Began).Milliseconds())
	})
	return true
}

func (s *Service) progress(done, total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.Done, s.now.Total = done, total
}

// Progress returns how far the last thing is, or the one before it if that is thing.
func (s *Service) Progress(thing string) wire.BackupProgress {
	s.mu.Lock()
	defer s.mu.Unlock()
	if thing != "" && thing == s.before.ID {
		return s.before
	}
	return s.now
}

// Verify reads all of a
func (s *Service) Verify(ctx context.Context, q wire.BackupQuery, progress func(done, total int)) (m Manifest, err error) {
	master, err := s.masterOf(q.Key)
	if err != nil {
		return m, err
	}
	if q.Name, err = s.named(ctx, q.From, q.Name); err != nil {
		return m, err
	}
	f, err := bucket.OpenFolder(ctx, q.From)
	if err != nil {
		return m, err
	}
	defer func() { _ = f.Close() }() // what was written is closed by then
	return Verify(ctx, f, q.Name, master, progress)
}

// Backup makes a backup; Galleries of q are names (TENANT/GALLERY) or ids.
func (s *Service) Backup(ctx context.Context, q wire.BackupOrder, progress func(done, total int)) (Manifest, error) {
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
		URL: q.To, Name: q.Name, Galleries: galleries, Version: s.cfg.Version, Master: s.cfg.Master, Progress: progress,
	}, copies{s})
}

// galleries finds galleries by their ids, or names with their tenants' before.
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
func (s *Service) Restore(ctx context.Context, q wire.RestoreOrder, progress func(done, total int)) (Restored, error) {
	from, err := s.masterOf(q.Key)
	if err != nil {
		return Restored{}, err
	}
	if q.Name, err = s.named(ctx, q.From, q.Name); err != nil {
		return Restored{}, err
	}
	return Restore(ctx, RestoreOptions{
		URL: q.From, Name: q.Name, Gallery: q.Gallery, From: from, To: s.cfg.Master, Erased: q.Erasures, WithErased: q.WithErased, Progress: progress,
	}, copies{s})
}

// masterOf gives the cluster's key that a backup was made with; none is this one's.
func (s *Service) masterOf(key []byte) (*seal.Master, error) {
	if len(key) == 0 {
		return s.cfg.Master, nil
	}
	return seal.NewMaster(key)
}

// named gives the name of the newest backup where none is given.
func (s *Service) named(ctx context.Context, url, name string) (string, error) {
	if name != "" {
		return name, nil
	}
	f, err := bucket.OpenFolder(ctx, url)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // what was written is closed by then
	return Newest(ctx, f)
}
