package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"facet.internal/client"
	"facet/cmd/facet/admin"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/erasing"
	"facet/internal/must"
	"facet/node/nodetest"
	"facet/node/receipt"
	"facet/raftfsm/metafsm"
)

// tenantOf returns a client of a new tenant, and the flags that name the tenant and the cluster.
func tenantOf(t *testing.T, cluster *nodetest.Cluster, name string) (*client.Client, []string) {
	t.Helper()
	key, err := cluster.CreateTenant(name)
	must.Do(t, err)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	var addresses, urls []string
	for _, n := range cluster.Nodes {
		addresses, urls = append(addresses, n.Config.AdminAddress), append(urls, n.URL)
	}
	pair, err := cluster.Authority.IssueAdmin("tester")
	if err == nil {
		err = pair.Save(in("admin.pem"), in("admin.key"))
	}
	if err == nil {
		err = os.WriteFile(in("ca.pem"), cluster.Authority.CertPEM(), 0o600)
	}
	text, failed := json.Marshal(map[string]any{"base_urls": urls, "ca_file": cluster.Roots, "access_key": key.ID, "secret_key": key.Secret})
	if err = errors.Join(err, failed); err == nil {
		err = os.WriteFile(in("tenant.json"), text, 0o600)
	}
	must.Do(t, err)
	profile, err := client.ReadProfile(in("tenant.json"))
	must.Do(t, err)
	profile.Dial = cluster.Dial
	c, err := client.New(profile)
	must.Do(t, err)
	t.Cleanup(c.Close)
	return c, []string{"--tenant", in("tenant.json"), "--admin", strings.Join(addresses, ","), "--certificates", dir}
}

// runErase runs facet erase and returns what it prints.
func runErase(t *testing.T, cluster *nodetest.Cluster, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newErase()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	err := cmd.ExecuteContext(admin.WithDialer(t.Context(), cluster.Dial))
	return out.String(), err
}

// galleryOf returns a client of a new gallery.
func galleryOf(t *testing.T, c *client.Client, name string) *client.Client {
	t.Helper()
	g, err := c.CreateGallery(t.Context(), client.NewGallery{Name: name, FaceMinimumQualityScore: .45, Size: 100})
	must.Do(t, err)
	return c.WithAPIKey(g.APIKey)
}

func TestErase(t *testing.T) {
	nodetest.Run(t, nodetest.Options{}, func(t *testing.T, cluster *nodetest.Cluster) {
		until(t, func() (string, bool) {
			level := cluster.Nodes[0].Node.Status(t.Context()).Level
			return fmt.Sprintf("the cluster has level %d", level), level == metafsm.Level
		})
		receiptNamesExpired(t, cluster)
		followsMergeUnderWay(t, cluster)
		noticesWhoWent(t, cluster)
		writesSignedReceipt(t, cluster)
	})
}

// A subject that has expired gets a receipt, and one that has not is erased.
func receiptNamesExpired(t *testing.T, cluster *nodetest.Cluster) {
	c, flags := tenantOf(t, cluster, "expired")
	inside := galleryOf(t, c, "staff")
	made, err := inside.Register(t.Context(), client.Photo{Image: []byte("person x"), Expires: time.Now().Add(time.Second)})
	must.Do(t, err)
	until(t, func() (string, bool) {
		_, err := inside.Subject(t.Context(), made.ID)
		return "the subject does not expire", err != nil
	})
	if out, err := runErase(t, cluster, append(flags, "--yes", made.ID)...); err != nil || !strings.Contains(out, "nothing was erased") {
		t.Fatalf("without --gone: %v\n%s", err, out)
	}
	file := filepath.Join(t.TempDir(), "r")
	out, err := runErase(t, cluster, append(flags, "--yes", "--gone", "--now", "--wait=disks", "--receipt", file, made.ID)...)
	if err != nil || !strings.Contains(out, made.ID) || !strings.Contains(out, "COMPLETE: no node") {
		t.Fatalf("%v\n%s", err, out)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `"gone_before": true`) {
		t.Errorf("the receipt does not say that the subject was gone: %v\n%s", err, text)
	}
	var misuse *cli.UsageError
	if _, err := runErase(t, cluster, append(flags, "--gone", "--external-id", "4711")...); !errors.As(err, &misuse) {
		t.Errorf("--gone with an external id: %v", err)
	}
}

func writesSignedReceipt(t *testing.T, cluster *nodetest.Cluster) {
	c, flags := tenantOf(t, cluster, "receipt")
	photo := []byte("person x")
	var ids []string
	for _, name := range []string{"staff", "visitors"} {
		inside := galleryOf(t, c, name)
		external := "of " + name
		for _, p := range []client.Photo{{Image: photo}, {Image: []byte("another " + name), ExternalID: &external}} {
			made, err := inside.Register(t.Context(), p)
			must.Do(t, err)
			ids = append(ids, made.ID)
		}
	}
	dir := t.TempDir()
	file, image := filepath.Join(dir, "r"), filepath.Join(dir, "photo")
	must.Do(t, os.WriteFile(image, photo, 0o600))
	var asked *cli.UsageError
	if out, err := runErase(t, cluster, append(flags, "--photo", image, "--receipt", file)...); !errors.As(err, &asked) || !strings.Contains(out, ids[0]) || strings.Contains(out, ids[1]) {
		t.Fatalf("without a terminal and --yes: %v\n%s", err, out)
	}
	out, err := runErase(t, cluster, append(flags, "--photo", image, "--receipt", file, "--yes", "--now", "--wait=disks")...)
	if err != nil || !strings.Contains(out, ids[2]) || !strings.Contains(out, "COMPLETE: no node") {
		t.Fatalf("%v\n%s", err, out)
	}
	verify(t, cluster, file, ids)

	out, err = runErase(t, cluster, append(flags, "--receipt", filepath.Join(dir, "r2"), "--yes", ids[3], ids[0])...)
	if err != nil || !strings.Contains(out, "NOT COMPLETE") || !strings.Contains(out, "facet erase continue") || !strings.Contains(out, "of visitors\n") {
		t.Errorf("one by its id: %v\n%s", err, out)
	}
	if out, err = runErase(t, cluster, append(flags, "--yes", ids[3])...); err != nil || !strings.Contains(out, "nothing was erased") {
		t.Errorf("who is gone: %v\n%s", err, out)
	}
	out, err = runErase(t, cluster, append(flags, "--receipt", filepath.Join(dir, "r3"), "--yes", "--external-id", "of staff")...)
	if err != nil || !strings.Contains(out, ids[1]) || !strings.Contains(out, "of staff\n") {
		t.Errorf("one by the external id: %v\n%s", err, out)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "r3")); err != nil || strings.Contains(string(text), "of staff") {
		t.Errorf("the receipt has the external id: %v\n%s", err, text)
	}
	if left, err := c.Galleries(t.Context()); err != nil || left[0].Count+left[1].Count != 0 {
		t.Errorf("the galleries are %+v, %v", left, err)
	}
}

// A subject that is merged while it is erased is not on a receipt while the other subject has its
// faces, and the command names that subject.
func followsMergeUnderWay(t *testing.T, cluster *nodetest.Cluster) {
	c, flags := tenantOf(t, cluster, "merge")
	inside := galleryOf(t, c, "staff")
	// merging registers two subjects and returns when the second one has the first one's face.
	merging := func(face string) (source, target string, ended chan error) {
		var ids [2]string
		for i, image := range []string{face, face + " of another day"} {
			made, err := inside.Register(t.Context(), client.Photo{Image: []byte(image)})
			must.Do(t, err)
			ids[i] = made.ID
		}
		ended = make(chan error, 1)
		go func() {
			_, err := inside.Merge(t.Context(), ids[1], ids[0])
			ended <- err
		}()
		until(t, func() (string, bool) {
			events, err := inside.Events(t.Context(), ids[1])
			return fmt.Sprint("the merge does not begin: ", events, err), len(events) == 2
		})
		return ids[0], ids[1], ended
	}
	wantGone := func(face string) {
		t.Helper()
		for m, err := range inside.Matches(t.Context(), client.MatchQuery{Probe: []byte(face)}) {
			t.Errorf("subject %s still has the face of %s, %v", m.ID, face, err)
		}
	}
	receipt := func(name string) string { return filepath.Join(t.TempDir(), name) }

	source, target, ended := merging("alone")
	out, err := runErase(t, cluster, append(flags, "--yes", "--receipt", receipt("r"), source)...)
	if err == nil || !strings.Contains(err.Error(), target) || strings.Contains(out, "GROUP") {
		t.Errorf("the source alone: %v\n%s", err, out)
	}
	must.Do(t, <-ended)
	if out, err := runErase(t, cluster, append(flags, "--yes", "--receipt", receipt("r"), target)...); err != nil || !strings.Contains(out, target) {
		t.Errorf("then the target: %v\n%s", err, out)
	}
	wantGone("alone")

	source, target, ended = merging("both")
	out, err = runErase(t, cluster, append(flags, "--yes", "--receipt", receipt("r"), source, target)...)
	if err != nil || strings.Count(out, source) != 2 || strings.Count(out, target) != 2 {
		t.Errorf("source and target: %v\n%s", err, out)
	}
	must.Do(t, <-ended)
	wantGone("both")
}

// A subject that goes between the list and the erasure, as by a merge that is over, is an error.
func noticesWhoWent(t *testing.T, cluster *nodetest.Cluster) {
	c, _ := tenantOf(t, cluster, "went")
	inside := galleryOf(t, c, "staff")
	made, err := inside.Register(t.Context(), client.Photo{Image: []byte("x")})
	must.Do(t, err)
	list, err := erasing.Find(t.Context(), c, erasing.Person{Subjects: []string{made.ID}})
	must.Do(t, err)
	must.Do(t, inside.Unregister(t.Context(), made.ID))
	if done, err := erasing.Erase(t.Context(), list); err == nil || !strings.Contains(err.Error(), "after it was listed") || len(done) > 0 {
		t.Errorf("got %v, %v", done, err)
	}
}

// verify checks a receipt of ids[0] and ids[2] as somebody offline does.
func verify(t *testing.T, cluster *nodetest.Cluster, file string, ids []string) {
	t.Helper()
	s := cluster.Nodes[1].Node.Status(t.Context())
	var shown bytes.Buffer
	must.Do(t, admin.WriteCluster(&shown, s))
	key := regexp.MustCompile(`facet-\S+`).FindString(shown.String())
	out, err := runErase(t, cluster, "verify", file, "--key", key)
	if err != nil || !strings.Contains(out, ids[0]) || !strings.Contains(out, ids[2]) || strings.Contains(out, ids[1]) {
		t.Errorf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(file)
	must.Do(t, err)
	text[len(text)/3] ^= 4
	changed := file + ".changed"
	must.Do(t, os.WriteFile(changed, text, 0o600))
	if out, err := runErase(t, cluster, "verify", changed, "--key", key); !errors.Is(err, receipt.ErrReceipt) {
		t.Errorf("one bit changed: %v\n%s", err, out)
	}
}
