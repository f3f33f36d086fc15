//go:build long

package clouds_test

import (
	"fmt"
	"net/http"
	"testing"

	"facet/internal/must"
	"facet/node/nodetest"
	"facet/node/wire"
)

func TestClusterIsRestoredFromS3(t *testing.T) {
	url := startS3(t)
	old := nodetest.Start(t, nodetest.Options{})
	c := old.Client("bank")
	var g struct{ APIKey string }
	c.Call(t, old.Nodes[0].URL, http.MethodPost, "/api/galleries", map[string]any{
		"name": "g", "description": "", "size": 100, "faceMinimumQualityScore": 0.45,
	}).Decode(t, &g)
	c.APIKey = g.APIKey
	for i := range 20 {
		a := c.Call(t, old.Nodes[0].URL, http.MethodPost, "/v1.1/subjects", map[string]any{"face": nodetest.Image(fmt.Sprint("person ", i))})
		if a.Status != http.StatusCreated {
			t.Fatalf("register: %d %s", a.Status, a.Body)
		}
	}
	m, err := old.Nodes[0].Node.Backups().Backup(t.Context(), wire.BackupOrder{To: url, Name: "whole"}, nil)
	must.Do(t, err)
	young := nodetest.Start(t, nodetest.Options{Nodes: 1, ClusterKeyFile: old.Nodes[0].Config.ClusterKeyFile})
	q := wire.BackupQuery{From: url}
	if v, err := young.Nodes[0].Node.Backups().Verify(t.Context(), q, nil); err != nil || v.Digest != m.Digest || v.Active() != 20 {
		t.Fatalf("verified: %d events, %v", v.Active(), err)
	}
	if done, err := young.Nodes[0].Node.Backups().Restore(t.Context(), wire.RestoreOrder{BackupQuery: q}, nil); err != nil || done.Active != 20 {
		t.Fatalf("restored: %+v, %v", done, err)
	}
	var all struct{ Total int }
	young.As(c).Call(t, young.Nodes[0].URL, http.MethodGet, "/v1.1/subjects", nil).Decode(t, &all)
	if all.Total != 20 {
		t.Errorf("the gallery has %d entries", all.Total)
	}
}
