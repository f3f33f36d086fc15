package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"facet.internal/client"
)

// dev is the part of the cluster's dev.json that these tests need.
type dev struct {
	BaseURLs  []string `json:"base_urls"`
	AccessKey string   `json:"access_key"`
	SecretKey string   `json:"secret_key"`
	CAFile    string   `json:"ca_file"`
	BucketDir string   `json:"bucket_dir"`
	Nodes     []struct {
		PID int      `json:"pid"`
		URL string   `json:"url"`
		Cmd []string `json:"cmd"`
	} `json:"nodes"`
}

func readDev(t *testing.T) dev {
	t.Helper()
	text, err := os.ReadFile("dev/dev.json")
	var d dev
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func photo(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("assets", "photos", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The photos, named by their subjects.
const (
	obama        = "face_recognition/obama.jpg"
	anotherObama = "face_recognition/obama2.jpg"
	biden        = "face_recognition/biden.jpg"
	rocket       = "scikit-image/rocket.jpg"
	threePeople  = "face-api/sample1.jpg"
)

// gallery returns a client of the real cluster with a gallery named after the test.
func gallery(t *testing.T, size int) (*client.Client, client.Gallery) {
	t.Helper()
	c, err := client.FromDev("dev/dev.json")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	g, err := c.CreateGallery(t.Context(), client.NewGallery{Name: t.Name(), Description: "tests", FaceMinimumQualityScore: .45, Size: size})
	if err != nil {
		t.Fatal(err)
	}
	return c.WithAPIKey(g.APIKey), g
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("got %v, want %v", err, kind)
	}
	if e, ok := errors.AsType[*client.Error](err); ok && len(e.RequestID) != 32 {
		t.Errorf("%v: request id %q", err, e.RequestID)
	}
}

func TestPersonIsFoundOnAnotherPhoto(t *testing.T) {
	ctx := t.Context()
	c, _ := gallery(t, 10)
	made, err := c.Register(ctx, client.Photo{Image: photo(t, obama)})
	must(t, err)
	if made.EventID == "" || made.Attributes.FaceQualityScore < .45 || made.Attributes.FaceArea.Right <= made.Attributes.FaceArea.Left ||
		made.Attributes.RightEyeCenter.X >= made.Attributes.LeftEyeCenter.X {
		t.Errorf("got %+v", made)
	}
	found, err := c.Search(ctx, client.SearchQuery{Probe: photo(t, anotherObama)})
	must(t, err)
	if len(found.Candidates) != 1 || found.Candidates[0].ID != made.ID || found.Candidates[0].Events[0].ID != made.EventID || found.Candidates[0].Score < client.ThresholdDefault {
		t.Errorf("got %+v", found)
	}
	stranger, err := c.Search(ctx, client.SearchQuery{Probe: photo(t, biden)})
	must(t, err)
	if len(stranger.Candidates) != 0 || stranger.Attributes.FaceScore < .5 {
		t.Errorf("a stranger: got %+v", stranger)
	}
	stranger, err = c.Search(ctx, client.SearchQuery{Probe: photo(t, biden), Threshold: new(0), Limit: 1})
	must(t, err)
	if len(stranger.Candidates) != 1 || stranger.Candidates[0].Score >= client.ThresholdDefault {
		t.Errorf("threshold 0: got %+v", stranger)
	}
	score, err := c.VerifySubject(ctx, made.ID, photo(t, anotherObama))
	must(t, err)
	if score != found.Candidates[0].Score {
		t.Errorf("verify gives %d, search %d", score, found.Candidates[0].Score)
	}
	same, err := c.VerifyFaces(ctx, photo(t, obama), photo(t, anotherObama))
	must(t, err)
	if same != score {
		t.Errorf("two photos give %d, subject and photo %d", same, score)
	}
	_, err = c.VerifySubject(ctx, made.ID, photo(t, biden))
	refused(t, err, client.ErrNotVerified)
	if e, ok := errors.AsType[*client.Error](err); !ok || e.Score == nil || *e.Score != stranger.Candidates[0].Score {
		t.Errorf("got %+v", e)
	}
	_, err = c.VerifySubject(ctx, "nobody ü/%25", photo(t, biden))
	refused(t, err, client.ErrNotFound)
}

func TestRefusalsHaveKinds(t *testing.T) {
	ctx := t.Context()
	c, _ := gallery(t, 1)
	register := func(image []byte, tags ...string) error {
		_, err := c.Register(ctx, client.Photo{Image: image, Tags: tags})
		return err
	}
	refused(t, register(photo(t, rocket)), client.ErrNoFace)
	refused(t, register(photo(t, threePeople)), client.ErrMultipleFaces)
	refused(t, register([]byte("no image")), client.ErrImage)
	refused(t, register(nil), client.ErrInvalidRequest)
	refused(t, register(photo(t, obama), "no such tag"), client.ErrUnknownTag)
	must(t, register(photo(t, obama), []string{}...))
	refused(t, register(photo(t, biden)), client.ErrGalleryFull)
	refused(t, c.WithAPIKey("").Unregister(ctx, "x"), client.ErrForbidden)
	refused(t, c.Unregister(ctx, "../a b?c=d#e+é%2F"), client.ErrNotFound) // signed as it is sent
	faces, err := c.Extract(ctx, photo(t, threePeople), 2)
	must(t, err)
	if len(faces) != 2 {
		t.Errorf("%d faces, want 2", len(faces))
	}
	measured, err := c.ExtractMeasured(ctx, photo(t, threePeople), 1)
	must(t, err)
	if len(measured) != 1 || measured[0].Attributes != faces[0] || measured[0].Measures["sharpness"].Component < 50 || len(measured[0].Defects) > 0 {
		t.Errorf("measured: %+v", measured)
	}
	d := readDev(t)
	wrong, err := client.New(client.Config{BaseURLs: d.BaseURLs, CAFile: d.CAFile, AccessKey: d.AccessKey, SecretKey: d.SecretKey + "x"})
	must(t, err)
	refused(t, wrong.Health(ctx), client.ErrForbidden)
}

func TestListIsReadByPage(t *testing.T) {
	ctx := t.Context()
	c, g := gallery(t, 10)
	list, err := c.Subjects(ctx, client.Page{})
	must(t, err)
	if len(list.Subjects) != 0 || list.Total != 0 {
		t.Errorf("an empty gallery: got %+v", list)
	}
	var ids []string
	for _, name := range []string{obama, biden, anotherObama} {
		made, err := c.Register(ctx, client.Photo{Image: photo(t, name)})
		must(t, err)
		ids = append(ids, made.ID)
	}
	must(t, c.Unregister(ctx, ids[1]))
	refused(t, c.Unregister(ctx, ids[1]), client.ErrNotFound)
	var all []string
	for e, err := range c.AllSubjects(ctx, client.Ascending) {
		must(t, err)
		if time.Since(e.LastUpdated).Abs() > time.Hour {
			t.Errorf("updated %s", e.LastUpdated)
		}
		all = append(all, e.ID+string(e.Status))
	}
	if want := []string{ids[0] + "A", ids[2] + "A", ids[1] + "D"}; !slices.Equal(all, want) {
		t.Errorf("got %v, want %v", all, want)
	}
	list, err = c.Subjects(ctx, client.Page{Start: 1, Length: 1, Order: client.Descending})
	must(t, err)
	if len(list.Subjects) != 1 || list.Subjects[0].ID != ids[2] || list.Total != 3 || list.Next == "" {
		t.Errorf("got %+v", list)
	}
	list, err = c.Subjects(ctx, client.Page{After: list.Next})
	must(t, err)
	if len(list.Subjects) != 1 || list.Subjects[0].ID != ids[0] || list.Next != "" {
		t.Errorf("the page that follows: got %+v", list)
	}
	_, err = c.Subjects(ctx, client.Page{After: strings.Repeat("A", 48)})
	refused(t, err, client.ErrInvalidRequest)
	g, err = c.Gallery(ctx, g.ID)
	must(t, err)
	if g.Count != 2 || g.Size != 10 || len(g.Applications) != 1 {
		t.Errorf("got %+v", g)
	}
}

func TestGalleriesAndApplicationsAreManaged(t *testing.T) {
	ctx := t.Context()
	c, g := gallery(t, 5)
	_, err := c.CreateGallery(ctx, client.NewGallery{Name: g.Name, FaceMinimumQualityScore: .5, Size: 5})
	refused(t, err, client.ErrDuplicate)
	a, err := c.CreateApplication(ctx, client.NewApplication{
		Name: "door", FaceMinimumQualityScore: .6, GalleryID: g.ID, VerifyThreshold: new(8000), EnrolmentGuardThreshold: new(9000),
		MultipleFaces: client.FacesDominant,
	})
	must(t, err)
	got, err := c.Application(ctx, a.ID)
	must(t, err)
	if got != a || a.VerifyThreshold != 8000 || a.EnrolmentGuardThreshold != 9000 || a.MultipleFaces != client.FacesDominant || len(a.APIKey) != 40 {
		t.Errorf("got %+v, made %+v", got, a)
	}
	all, err := c.Applications(ctx)
	must(t, err)
	if !slices.Contains(all, client.ApplicationEntry{ID: a.ID, Name: "door", APIKey: a.APIKey}) {
		t.Errorf("got %+v", all)
	}
	galleries, err := c.Galleries(ctx)
	must(t, err)
	if !slices.ContainsFunc(galleries, func(x client.Gallery) bool { return x.ID == g.ID && x.Size == 5 }) {
		t.Errorf("got %+v", galleries)
	}
	_, err = c.Gallery(ctx, "no such")
	refused(t, err, client.ErrNotFound)
	made, err := c.WithAPIKey(a.APIKey).Register(ctx, client.Photo{Image: photo(t, obama)})
	must(t, err)
	must(t, c.Unregister(ctx, made.ID)) // the other application of the same gallery
}

// TestLostAnswerIsRequestedAgain puts a node in front of the cluster. It forwards
// each registration and closes the connection in place of the answer, twice.
func TestLostAnswerIsRequestedAgain(t *testing.T) {
	c, g := gallery(t, 10)
	d := readDev(t)
	roots := testClientRoots(t, d.CAFile)
	node, err := url.Parse(d.BaseURLs[0])
	must(t, err)
	var lost atomic.Int32
	proxy := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		on := r.Clone(r.Context()) // the Host that was signed stays
		on.URL.Scheme, on.URL.Host, on.RequestURI = "https", node.Host, ""
		answer, err := roots.RoundTrip(on)
		if err != nil {
			t.Errorf("pass on: %v", err)
			hangUp(w)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusCreated {
			t.Errorf("got %d %s, %v", answer.StatusCode, body, err)
		}
		if lost.Add(1) <= 2 {
			hangUp(w)
		}
		w.WriteHeader(answer.StatusCode)
		_, _ = w.Write(body)
	}))
	t.Cleanup(proxy.Close)
	through, err := client.New(client.Config{
		BaseURLs: []string{proxy.URL}, APIKey: g.APIKey, AccessKey: d.AccessKey, SecretKey: d.SecretKey,
		TLS: proxy.Client().Transport.(*http.Transport).TLSClientConfig,
	})
	must(t, err)
	made, err := through.Register(t.Context(), client.Photo{Image: photo(t, obama)})
	must(t, err)
	list, err := c.Subjects(t.Context(), client.Page{})
	must(t, err)
	if lost.Load() != 3 || list.Total != 1 || list.Subjects[0].ID != made.ID {
		t.Errorf("%d tries reached the cluster; made %s, the gallery has %+v", lost.Load(), made.ID, list)
	}
}

// TestWritesContinueAfterNodeKill kills a node with SIGKILL during writes. Each
// write has one effect. The command in dev.json starts the node again.
func TestWritesContinueAfterNodeKill(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c, _ := gallery(t, 100)
	victim := readDev(t).Nodes[1]
	image := photo(t, obama)
	made := map[string]bool{}
	for i := range 12 {
		if i == 3 {
			must(t, syscall.Kill(victim.PID, syscall.SIGKILL))
		}
		r, err := c.Register(ctx, client.Photo{Image: image})
		must(t, err)
		made[r.ID] = true
	}
	again := exec.Command(victim.Cmd[0], victim.Cmd[1:]...)
	dieWithUs(again)
	must(t, again.Start())
	go func() { _ = again.Wait() }() // facet dev ends it
	listed := map[string]bool{}
	for e, err := range c.AllSubjects(ctx, client.Ascending) {
		must(t, err)
		listed[e.ID] = true
	}
	if len(made) != 12 || len(listed) != 12 {
		t.Errorf("made %d, listed %d, want 12", len(made), len(listed))
	}
	d := readDev(t)
	one, err := client.New(client.Config{BaseURLs: []string{victim.URL}, CAFile: d.CAFile, AccessKey: d.AccessKey, SecretKey: d.SecretKey, Tries: 100})
	must(t, err)
	must(t, one.Health(ctx)) // it serves again
}
