package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"facet/engine/models"
	"facet/internal/must"
)

// A cluster that was founded with another pack than facet's own keeps it, though its nodes name the folder of all
// packs, and gives it to nodes that join.
func TestClusterKeepsItsPack(t *testing.T) {
	t.Parallel()
	packs := filepath.Join("..", "..", "assets", "packs")
	f := func(c operated, folder string, nodes int) {
		t.Helper()
		want, err := models.Read(filepath.Join(packs, folder))
		must.Do(t, err)
		waitSettled(t, c, nodes, 0)
		// A node with another pack than the cluster's does not serve.
		if s, err := statusOf(c); err != nil || s.Pack != want.ID || len(s.Nodes) != nodes {
			t.Fatalf("want %d nodes with the pack %s, %.12s: %+v, %v", nodes, folder, want.ID, s, err)
		}
	}
	f(shared(t), models.FoundingPack, 3)
	c := serve(t, program(), 1, 1, "--models", filepath.Join(packs, models.FolderMobile))
	f(c, models.FolderMobile, 1)
	first := c.nodes[0]
	first.Signal(syscall.SIGTERM)
	// Releases before 0.4 noted no pack and had one only.
	must.Do(t, os.Remove(filepath.Join(first.Data, "pack")))
	first.Args = append(first.Args, "--models", packs)
	c.start(t, first)
	f(c, models.FolderMobile, 1)
	c.Args = nil
	c.start(t, c.add(t))
	f(c, models.FolderMobile, 2)
}
