package config

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"facet/internal/must"
)

func TestSharedSettingsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	s, err := load(t, "", []string{"FACET_BUCKET=s3://AKIA:canary1@b?secret=canary2", "FACET_BACKUP_TO=s3://b/dir?token=canary3", "FACET_RAFT_LEASE=1s", "FACET_GOSSIP_KEY="})
	if err != nil && !strings.Contains(err.Error(), "gossip") {
		t.Fatal(err)
	}
	s.ClusterKeyCommand = []string{"/bin/vault", "--token", "canary4"}
	shared, err := s.Shareable()
	must.Do(t, err)
	text, err := json.Marshal(shared)
	must.Do(t, err)
	if strings.Contains(string(text), "canary") || !strings.Contains(string(text), "/bin/vault") || shared["raft-lease"] != "1s" || shared["backup-every"] != "24h0m0s" {
		t.Errorf("%s", text)
	}
	if len(s.ClusterKeyCommand) != 3 {
		t.Error("the settings themselves are changed")
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	Flags(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		if _, ok := shared[f.Name]; !ok && f.Name != FileFlag && !f.Hidden {
			t.Errorf("%s is left out", f.Name)
		}
	})
}
