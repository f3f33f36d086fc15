package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"facet/cmd/facet/config"
	"facet/internal/pinned"
	"facet/node/bucket"
	"facet/node/cert"
	"facet/node/keys"
	"facet/node/transport"
)

// keyTimeout is how long a command may take to print a key.
const keyTimeout = 30 * time.Second

// Check returns an error with all files and programs named by the settings that a node could not use.
func Check(ctx context.Context, s config.Settings) error {
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	var errs []error
	note := func(setting string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", setting, err))
		}
	}
	for _, name := range []string{"node", "server"} {
		in := func(file string) string { return filepath.Join(s.Certificates, file) }
		_, err := cert.Load(cert.Files{CA: in("ca.pem"), Cert: in(name + ".pem"), Key: in(name + ".key")}, slog.New(slog.DiscardHandler))
		note("certificates", err)
	}
	_, err := transport.OS{}.Resolve(ctx, s.Advertised())
	note("peer-advertise", err)
	note("cluster-key", keys.Check(ctx, keys.SourceOf(s.ClusterKey, s.CredentialsDir, s.ClusterKeyCommand)))
	note("gossip-key", keys.Check(ctx, keys.SourceOf(s.GossipKey, s.CredentialsDir, s.GossipKeyCommand)))
	_, _, err = Pack(s.Models, s.Dir)
	note("models", err)
	want := s.ONNXRuntimeSHA256
	if want == "" {
		want = pinned.Hash(filepath.Base(s.ONNXRuntime))
	}
	library, err := pinned.Open(s.ONNXRuntime, want)
	if err == nil {
		err = library.Close()
	}
	note("onnxruntime", err)
	for _, store := range []struct{ name, url string }{{"bucket", s.Bucket}, {"backup-to", s.BackupTo}} {
		if store.url != "" {
			note(store.name, bucket.Check(store.url))
		}
	}
	return errors.Join(errs...)
}
