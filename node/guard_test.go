package node_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/nodetest"
	"facet/raftfsm/metafsm"
	"facet/shard"
)

// A guarded registration does not wait for ever for a rival whose node is gone, and
// does not name its subject.
func TestGuardOutlivesADeadRival(t *testing.T) {
	nodetest.Run(t, nodetest.Options{Nodes: 1, Shards: 1}, func(t *testing.T, cluster *nodetest.Cluster) {
		c, node := cluster.Client("guarded"), cluster.Nodes[0]
		gallery(t, c, node.URL, "staff", 10)
		enrol(t, c, node.URL, "somebody else") // the shard has slots now
		expect(t, c, http.StatusOK, node.URL, http.MethodPatch, "/api/applications/"+applicationID(t, c, node.URL), map[string]any{"enrolmentGuard": true})

		rival := holdRival(t, c, node, "eve")
		began := time.Now()
		var made subject
		expect(t, c, http.StatusCreated, node.URL, http.MethodPost, "/v1.1/subjects", face("eve")).Decode(t, &made)
		if took := time.Since(began); took < 2*time.Second || took > 10*time.Second {
			t.Errorf("the rival %s was waited for during %v", rival, took)
		}
		if got := find(t, c, node.URL, "eve"); fmt.Sprint(got) != fmt.Sprint([]string{made.ID}) {
			t.Errorf("found %v, want %s", got, made.ID)
		}
	})
}

// holdRival leaves a pending event of a person with the least id of all, as a node does
// that dies before it activates the event. It returns the event's subject.
func holdRival(t *testing.T, c *nodetest.Client, node *nodetest.Member, person string) id.Subject {
	t.Helper()
	of := id.Gallery{UUID: parsed(t, galleryID(t, c, node.URL))}
	key, generation, err := node.Node.DataKey(of)
	must.Do(t, err)
	image, err := base64.StdEncoding.DecodeString(nodetest.Image(person))
	must.Do(t, err)
	faces, err := nodetest.HashExtractor{}.Extract(t.Context(), image)
	must.Do(t, err)
	least := id.UUID{6: 0x80, 7: 1, 8: 0x80}
	e := shard.Event{
		Gallery: of, Generation: generation, Subject: id.Subject{UUID: least}, Event: id.Event{UUID: least},
		Time: time.Now().UnixMilli(), Op: id.Operation{1},
	}
	e.Sealed = shard.SealFace(key, shard.FaceRef{Gallery: of, Generation: generation, Subject: e.Subject, Event: e.Event}, faces[0])
	s, here := node.Node.ShardHere(1)
	if !here {
		t.Fatal("the shard is not here")
	}
	if _, err := s.Hold(e, shard.FreeSlots); err != nil {
		t.Fatal(err)
	}
	return e.Subject
}

// Of registrations that race for the last writes of a quota, the refused ones leave no
// pending face: its person may enrol at once when there is room.
func TestQuotaLeavesNoPendingFace(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		q := startQuotas(t, nodetest.Options{Nodes: 1, Shards: 1})
		node := q.cluster.Nodes[0]
		enrol(t, q.noisy, node.URL, "somebody") // the shard has slots now
		expect(t, q.noisy, http.StatusOK, node.URL, http.MethodPatch, "/api/applications/"+applicationID(t, q.noisy, node.URL), map[string]any{"enrolmentGuard": true})
		q.set(t, metafsm.QuotaWrites, 2)
		var work sync.WaitGroup
		for i := range 16 {
			work.Go(func() { q.noisy.Call(t, node.URL, http.MethodPost, "/v1.1/subjects", face(fmt.Sprint("racer ", i))) })
		}
		work.Wait()
		s, here := node.Node.ShardHere(1)
		if !here {
			t.Fatal("the shard is not here")
		}
		of := id.Gallery{UUID: parsed(t, galleryID(t, q.noisy, node.URL))}
		if use := s.Usage(of); use.Active != 2 || use.Pending != 0 {
			t.Errorf("%d active and %d pending faces, want 2 and 0", use.Active, use.Pending)
		}
	})
}
