package node_test

import (
	"fmt"
	"net/http"
	"testing"

	"facet/node"
	"facet/node/nodetest"
)

func TestABackupBringsAClusterBackOnOtherNodes(t *testing.T) {
	t.Parallel()
	old := nodetest.Start(t, nodetest.Options{})
	c, _ := old.ClientOf("bank", nil)
	url := old.Nodes[0].URL
	gallery(t, c, url, "staff", 200)
	var people []string
	for i := range 40 {
		people = append(people, fmt.Sprint("person ", i))
		enrol(t, c, url, people[i])
	}
	gone := enrol(t, c, url, "gone")
	expect(t, c, http.StatusNoContent, url, http.MethodDelete, "/v1.1/subjects/"+gone.ID, nil)
	to := "file://" + t.TempDir()
	m, err := old.Nodes[1].Node.Backup(t.Context(), node.BackupOrder{To: to, Name: "first"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m.Active() != 40 {
		t.Errorf("the backup has %d events", m.Active())
	}
	young := nodetest.Start(t, nodetest.Options{Nodes: 1, ClusterKeyFile: old.Nodes[0].Config.ClusterKeyFile})
	done, err := young.Nodes[0].Node.Restore(t.Context(), node.RestoreOrder{BackupQuery: node.BackupQuery{From: to}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if done.Active != 40 || done.Deleted != 1 || done.Galleries != 1 {
		t.Errorf("restored: %+v", done)
	}
	url = young.Nodes[0].URL
	for _, p := range people {
		if got := find(t, c, url, p); len(got) != 1 {
			t.Fatalf("%s: %v", p, got)
		}
	}
	if got := find(t, c, url, "gone"); len(got) != 0 {
		t.Errorf("who was erased is found: %v", got)
	}
	enrol(t, c, url, "newcomer")
	if got := find(t, c, url, "newcomer"); len(got) != 1 {
		t.Errorf("who came after is not found: %v", got)
	}
	young.Stop(0)
	young.Restart(0)
	young.WaitReady()
	if got := find(t, c, url, people[7]); len(got) != 1 {
		t.Errorf("after a restart %s is %v", people[7], got)
	}
}
