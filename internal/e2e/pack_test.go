package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"facet/engine/models"
)

// A new cluster gets the pack sface. One that was founded with another pack keeps it, though its
// nodes name the folder of all packs, and gives it to nodes that join.
func TestClusterKeepsItsPack(t *testing.T) {
	packs := filepath.Join("..", "..", "assets", "packs")
	f := func(c *served, folder string) {
		t.Helper()
		want, err := models.Read(filepath.Join(packs, folder))
		if err != nil {
			t.Fatal(err)
		}
		c.waitWhole(t)
		// A node with another pack than the cluster's does not serve.
		if s, err := c.status(); err != nil || s.Pack != want.ID || len(s.Nodes) != len(c.nodes) {
			t.Fatalf("want %d nodes with the pack %s, %.12s: %+v, %v", len(c.nodes), folder, want.ID, s, err)
		}
	}
	f(serve(t, program(), 1, 1), models.FoundingPack)
	c := serve(t, program(), 1, 1, "--models", filepath.Join(packs, models.FolderMobile))
	f(c, models.FolderMobile)
	first := c.nodes[0]
	first.end(syscall.SIGTERM)
	// Releases before 0.4 noted no pack and had one only.
	if err := os.Remove(filepath.Join(first.data, "pack")); err != nil {
		t.Fatal(err)
	}
	first.args = append(first.args, "--models", packs)
	c.start(t, first)
	f(c, models.FolderMobile)
	c.extra = nil
	c.start(t, c.add(t))
	f(c, models.FolderMobile)
}
