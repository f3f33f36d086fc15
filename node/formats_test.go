package node_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node"
	"facet/node/nodetest"
	"facet/raftfsm/metafsm"
	"facet/router"
)

// Data directories of nodes as 0.4.0 and later versions wrote them, each with the keys of its
// cluster and what is known to be in it. They are never changed. A version with a new
// form adds one of the form before:
//
//	go test -tags hashicorpmetrics ./node -run OldFormatsServe -fixture level-6
var (
	formatsDir = filepath.Join("testdata", "formats")
	newFixture = flag.String("fixture", "", "name of a data directory to be added to "+formatsDir)
)

// known is what a data directory is known to hold (known.json).
type known struct {
	AccessKey, Secret, APIKey string
	// People are found, one by one, under these subjects; Tagged have the tag "guest".
	People map[string]string
	Tagged []string
	// Gone are not found any more.
	Gone []string
	// Entries is the number of the gallery's entries, deleted ones counted.
	Entries int
}

func TestOldFormatsServeTheirFaces(t *testing.T) {
	t.Parallel()
	if *newFixture != "" {
		writeFixture(t, filepath.Join(formatsDir, *newFixture))
	}
	dirs, err := os.ReadDir(formatsDir)
	if err != nil || len(dirs) == 0 {
		t.Fatalf("there are no data directories of earlier formats: %v", err)
	}
	for _, d := range dirs {
		t.Run(d.Name(), func(t *testing.T) {
			nodetest.Virtual(t, func(t *testing.T) {
				time.Sleep(time.Until(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))) // the directories are not from the future
				dir := filepath.Join(formatsDir, d.Name())
				raw, err := os.ReadFile(filepath.Join(dir, "known.json"))
				must.Do(t, err)
				var k known
				must.Do(t, json.Unmarshal(raw, &k))
				cluster := nodetest.Start(t, nodetest.Options{
					Nodes: 1, Shards: 2, Dir: filepath.Join(dir, "n1"), ClusterKeyFile: filepath.Join(dir, "cluster.key"),
				})
				c := cluster.Client("of today").Keyed(router.AccessKey{ID: k.AccessKey, Secret: k.Secret})
				c.APIKey = k.APIKey
				url := cluster.Nodes[0].URL
				k.check(t, c, url)
				// What is written now stands beside it, also in this version's own form.
				k.People["a newcomer"] = enrol(t, c, url, "a newcomer").ID
				k.Entries++
				snapshotAll(t, cluster.Nodes[0].Node)
				restart(cluster, 0)
				k.check(t, c, url)
			})
		})
	}
}

func (k known) check(t *testing.T, c *nodetest.Client, url string) {
	t.Helper()
	for person, subject := range k.People {
		isFound(t, c, url, person, subject)
	}
	for _, person := range k.Gone {
		isGone(t, c, url, person)
	}
	for _, person := range k.Tagged {
		var r results
		expect(t, c, http.StatusOK, url, http.MethodPost, "/v1.1/face/search", probe(person, "guest")).Decode(t, &r)
		if len(r.Candidates) != 1 || r.Candidates[0].ID != k.People[person] {
			t.Errorf("%s among the guests: %+v", person, r.Candidates)
		}
	}
	var all struct{ Total int }
	expect(t, c, http.StatusOK, url, http.MethodGet, "/v1.1/subjects", nil).Decode(t, &all)
	if all.Total != k.Entries {
		t.Errorf("%d entries, want %d", all.Total, k.Entries)
	}
}

// snapshotAll has all groups of a node make a snapshot.
func snapshotAll(t *testing.T, n *node.Node) {
	t.Helper()
	for number := range id.Shard(3) {
		if err := n.SnapshotHere(number); err != nil {
			t.Fatalf("snapshot of group %d: %v", number, err)
		}
	}
}

// writeFixture makes a data directory with everything that one can hold: snapshots,
// files of events, of operations and of a job's items, and a log behind them. What is
// forgotten with time (operations, jobs) is known to nobody: raftfsm/shardfsm keeps the
// bytes of those.
func writeFixture(t *testing.T, dir string) {
	t.Helper()
	bucket := t.TempDir()
	cluster := nodetest.Start(t, nodetest.Options{Nodes: 1, Shards: 2, SlotsPerShard: 20, Bucket: "file://" + bucket})
	waitLevel(t, cluster.Nodes[0].Node, "the noted level", metafsm.Level, (*node.Node).NotedLevel)
	key, err := cluster.CreateTenant("bank")
	must.Do(t, err)
	c := cluster.Client("another").Keyed(key)
	url := cluster.Nodes[0].URL
	gallery(t, c, url, "staff", 60)
	k := known{AccessKey: key.ID, Secret: key.Secret, APIKey: c.APIKey, People: map[string]string{}}
	expect(t, c, http.StatusOK, url, http.MethodPost, "/v1.1/tags/guest", nil)
	write := func(from, to int) {
		for i := from; i < to; i++ {
			person := fmt.Sprint("person ", i)
			if i%5 > 0 {
				k.People[person] = enrol(t, c, url, person).ID
				continue
			}
			var s subject
			expect(t, c, http.StatusCreated, url, http.MethodPost, "/v1.1/subjects", face(person, "guest")).Decode(t, &s)
			k.People[person], k.Tagged = s.ID, append(k.Tagged, person)
		}
	}
	erase := func(person string) {
		expect(t, c, http.StatusNoContent, url, http.MethodDelete, "/v1.1/subjects/"+k.People[person], nil)
		k.Gone = append(k.Gone, person)
		delete(k.People, person)
	}
	replace := func(person, by string) {
		expect(t, c, http.StatusOK, url, http.MethodPut, "/v1.1/subjects/"+k.People[person], face(by))
		k.People[by], k.Gone = k.People[person], append(k.Gone, person)
		delete(k.People, person)
	}
	files := store{dir: filepath.Join(bucket, key.Tenant.String())}
	job := begin(t, c, url, map[string]any{"registrations": []map[string]string{
		{"filename": files.put(t, "a.jpg", "of a job")}, {"filename": "missing.jpg"},
	}})
	k.People["of a job"] = await(t, c, url, job, 2)[0].SubjectID
	write(0, 16)
	erase("person 1")
	replace("person 2", "person 2 of late")
	snapshotAll(t, cluster.Nodes[0].Node)
	write(16, 24)
	erase("person 3")
	replace("person 4", "person 4 of late")
	var all struct{ Total int }
	expect(t, c, http.StatusOK, url, http.MethodGet, "/v1.1/subjects", nil).Decode(t, &all)
	k.Entries = all.Total
	restart(cluster, 0)
	k.check(t, c, url)
	cluster.Stop(0)
	if err := os.CopyFS(filepath.Join(dir, "n1"), os.DirFS(cluster.Nodes[0].Config.Dir)); err != nil {
		t.Fatal(err) // among others when it is there: no fixture is ever changed
	}
	secret, err := os.ReadFile(cluster.Nodes[0].Config.ClusterKeyFile)
	must.Do(t, err)
	raw, err := json.MarshalIndent(k, "", "  ")
	must.Do(t, err)
	for name, b := range map[string][]byte{"cluster.key": secret, "known.json": append(raw, '\n')} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
}
