package node_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"facet/engine"
	"facet/internal/id"
	"facet/internal/must"
	"facet/node"
	"facet/node/nodetest"
	"facet/shard/kernel"
)

const foreignPack = "fedcba9876543210-test"

// A node with another pack says which pack it has and which the cluster has.
func TestPackMismatchNamesBothPacks(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 3, Founders: 2}, func(t *testing.T, cluster *nodetest.Cluster) {
		own := cluster.Nodes[0].Config.Pack
		f := func(i int) {
			t.Helper()
			cluster.Nodes[i].Config.Pack = foreignPack
			cluster.Restart(i)
			ended(t, cluster.Nodes[i], own[:12], foreignPack[:12])
			// An open connection is cut, and is no error of the stop.
			conn, err := cluster.Nodes[i].Config.Network.Dial(t.Context(), strings.TrimPrefix(cluster.Nodes[i].URL, "https://"))
			must.Do(t, err)
			defer conn.Close()
			cluster.Stop(i)
		}
		cluster.Stop(1)
		f(1) // a member
		cluster.Nodes[1].Config.Pack = own
		cluster.Restart(1)
		cluster.WaitReady()
		f(2)
	})
}

// foreign makes templates as HashExtractor does and says that another model made them.
type foreign struct{ nodetest.HashExtractor }

func (f foreign) ExtractLarge(ctx context.Context, image []byte, share float32) ([]engine.Face, error) {
	faces, err := f.HashExtractor.ExtractLarge(ctx, image, share)
	for i := range faces {
		faces[i].Model = id.Model{'o', 't', 'h', 'e', 'r'}
	}
	return faces, err
}

// A node whose pack passes for the cluster's and whose models differ all the same
// must not compare, on whichever node the templates lie.
func TestOtherModelsAreNotCompared(t *testing.T) {
	nodetest.Run(t, nodetest.Options{}, func(t *testing.T, cluster *nodetest.Cluster) {
		c := cluster.Client("bank")
		gallery(t, c, cluster.Nodes[0].URL, "staff", 1000)
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			enrol(t, c, cluster.Nodes[0].URL, name)
		}
		cluster.Stop(2)
		cluster.Nodes[2].Config.Extractor = foreign{}
		cluster.Restart(2)
		cluster.WaitReady()
		isFound(t, c, cluster.Nodes[0].URL, "a")
		a := c.Call(t, cluster.Nodes[2].URL, http.MethodPost, "/v1.1/face/search", map[string]any{"probe": nodetest.Image("a")})
		if a.Status != http.StatusInternalServerError {
			t.Errorf("through a node of another model: %d %s, want an error", a.Status, a.Body)
		}
	})
}

// A node codes templates by its pack's spectrum, and answers as one without.
func TestNodeUsesPackSpectrum(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		c, m := cluster.Client("bank"), cluster.Nodes[0]
		gallery(t, c, m.URL, "staff", 1000)
		var known []string
		for i := range 150 { // more than what is kept without codes
			known = append(known, enrol(t, c, m.URL, fmt.Sprint(i)).ID)
		}
		const dim = nodetest.Dim
		before := m.Node.BytesPerTemplate(dim)
		cluster.Stop(0)
		m.Config.Spectrum = make([]float64, dim) // the first half weighs all
		for i := range dim / 2 {
			m.Config.Spectrum[i] = 2. / dim
		}
		cluster.Restart(0)
		cluster.WaitReady()
		if after := m.Node.BytesPerTemplate(dim); after >= before {
			t.Errorf("a template of a spectrum with nothing in its second half takes %v bytes, without a spectrum %v", after, before)
		}
		for _, i := range []int{0, 77, 149} {
			isFound(t, c, m.URL, fmt.Sprint(i), known[i])
		}
		cluster.Stop(0)
		m.Config.Spectrum = []float64{1, 1}
		if n, err := node.Open(t.Context(), m.Config); !errors.Is(err, kernel.ErrSpectrum) {
			t.Errorf("a spectrum that is none: node %v, error %v, want ErrSpectrum", n, err)
		}
	})
}
