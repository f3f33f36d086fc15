package node_test

import (
	"crypto/sha256"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/internal/settings"
	"facet/node/nodetest"
	"facet/node/wire"
	"facet/router"
)

const (
	backupEvents  = 100_000
	backupClients = 128
)

// BenchmarkBackup makes, verifies and restores a backup of 100,000 events with
// templates of 192 numbers, through the logs of three nodes of this process, in a
// folder. x-copy is the ratio to a plain copy of the backup's own bytes into another
// folder with SHA-256, file by file, each brought to the disk.
func BenchmarkBackup(b *testing.B) {
	old := nodetest.Start(b, nodetest.Options{Nodes: 1})
	fillByRegistrations(b, old, backupEvents)
	for b.Loop() {
		from := b.TempDir()
		to := "file://" + from
		timed := func(name string, f func() error) time.Duration {
			begin := time.Now()
			if err := f(); err != nil {
				b.Fatalf("%s: %v", name, err)
			}
			took := time.Since(begin)
			b.ReportMetric(took.Seconds(), "s-"+name)
			return took
		}
		var bytes int64
		made := timed("backup", func() error {
			m, err := old.Nodes[0].Node.Backups().Backup(b.Context(), wire.BackupOrder{To: to, Name: "b"}, nil)
			bytes = m.Bytes
			if err == nil && m.Active() != backupEvents {
				b.Fatalf("%d events", m.Active())
			}
			return err
		})
		copied := timed("copy", func() error { return copySynced(filepath.Join(from, "b"), b.TempDir()) })
		q := wire.BackupQuery{From: to, Name: "b"}
		verified := timed("verify", func() error {
			_, err := old.Nodes[0].Node.Backups().Verify(b.Context(), q, nil)
			return err
		})
		young := nodetest.Start(b, nodetest.Options{ClusterKeyFile: old.Nodes[0].Config.ClusterKeyFile})
		restored := timed("restore", func() error {
			_, err := young.Nodes[0].Node.Backups().Restore(b.Context(), wire.RestoreOrder{BackupQuery: q}, nil)
			return err
		})
		young.Close()
		mb := float64(bytes) / 1e6
		b.ReportMetric(mb, "MB")
		b.ReportMetric(mb/made.Seconds(), "MB/s-backup")
		b.ReportMetric(mb/copied.Seconds(), "MB/s-copy")
		b.ReportMetric(mb/verified.Seconds(), "MB/s-verify")
		b.ReportMetric(mb/restored.Seconds(), "MB/s-restore")
		b.ReportMetric(made.Seconds()/copied.Seconds(), "x-copy-backup")
		b.ReportMetric(restored.Seconds()/copied.Seconds(), "x-copy-restore")
	}
}

// fillByRegistrations enrols that many subjects.
func fillByRegistrations(b *testing.B, cluster *nodetest.Cluster, events int) {
	b.Helper()
	_, tenant := cluster.ClientOf("bench")
	r := cluster.Nodes[0].Node.Router()
	g, err := r.CreateGallery(b.Context(), tenant, router.Write{Operation: id.Operation{1}}, router.NewGallery{
		Gallery: settings.Gallery{Name: "bench", Size: 200_000}, MinimumQuality: .45,
	})
	if err == nil {
		err = r.SyncMeta(b.Context()) // the node may follow
	}
	must.Do(b, err)
	access := router.Access{Tenant: tenant, Application: g.Applications[0].ID, Gallery: g.ID}
	var work sync.WaitGroup
	for n := range backupClients {
		work.Go(func() {
			for i := n; i < events; i += backupClients {
				image := binary.BigEndian.AppendUint32(nil, uint32(i))
				op := sha256.Sum256(image)
				if _, err := r.Register(b.Context(), router.Registration{
					Access: access, Write: router.Write{Operation: id.Operation(op[:len(id.Operation{})])}, Image: image,
				}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	if work.Wait(); b.Failed() {
		b.FailNow()
	}
}

// copySynced copies the files of a folder.
func copySynced(from, to string) error {
	names, err := filepath.Glob(filepath.Join(from, "*"))
	if err != nil {
		return err
	}
	for _, name := range names {
		in, err := os.Open(name)
		if err != nil {
			return err
		}
		out, err := os.Create(filepath.Join(to, filepath.Base(name)))
		if err == nil {
			_, err = io.Copy(io.MultiWriter(out, sha256.New()), in)
		}
		if err == nil {
			err = out.Sync()
		}
		in.Close()
		if err != nil {
			return err
		}
		if err := out.Close(); err != nil {
			return err
		}
	}
	return nil
}
