package process

import (
	"path/filepath"
	"testing"
	"time"

	"facet/internal/must"
)

func TestChildrenDieWithTheirParent(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "node.pid")
	parent := role("parent", name)
	in, err := parent.StdinPipe()
	must.Do(t, err)
	start(t, parent)
	if _, ok := Holder(name); !ok {
		t.Fatal("the child does not hold its file")
	}
	in.Close()
	if !waitFree(name, 10*time.Second) {
		t.Error("the child lives on")
	}
}
