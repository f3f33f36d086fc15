package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"syscall"
	"time"

	"facet/cmd/facet/dev"
	"facet/internal/id"
	"facet/node/wire"
)

// story is the state of the story so far.
type story struct {
	cfg      Config
	screen   *screen
	messages gate
	cluster  *dev.Cluster
	info     dev.Info
	client   *client

	names    map[string]string // person by subject id
	subjects map[string]string // subject id by person
	dead     int               // index of the killed node
}

// face contains the attributes of a face that the story uses.
type face struct {
	FaceQualityScore string `json:"faceQualityScore"`
}

type registered struct {
	ID         string `json:"id"`
	Attributes face   `json:"attributes"`
}

type found struct {
	Candidates []struct {
		ID    string `json:"id"`
		Score int    `json:"score"`
	} `json:"candidates"`
}

func (s *story) name(node int) string { return s.info.Nodes[node].Name }

func (s *story) gallery(ctx context.Context) error {
	s.screen.head("A gallery")
	begin := time.Now()
	var made struct {
		APIKey string `json:"apiKey"`
	}
	err := s.client.do(ctx, request{
		method: http.MethodPost, url: s.info.PortalURLs[0], path: "/api/galleries", key: "demo-gallery",
		in: map[string]any{
			"name": "Demo", "description": "people of the demo", "faceMinimumQualityScore": 0.45, "size": gallerySize,
		},
		out: &made,
	})
	if err != nil {
		return fmt.Errorf("create the gallery: %w", err)
	}
	s.client.apiKey = made.APIKey
	s.screen.timed("✓", fmt.Sprintf("made through %s, with room for %d faces and a key of its own", s.name(0), gallerySize), time.Since(begin))
	return nil
}

func (s *story) enrol(ctx context.Context) error {
	s.screen.head("Two people are enrolled, each through another node")
	for i, p := range []person{obama, biden} {
		if err := s.register(ctx, p, i); err != nil {
			return err
		}
	}
	s.screen.aside("The node finds the face, straightens it, turns it into 192 numbers, and has")
	s.screen.aside("them written down on a majority of nodes before it says so. No photo is kept.")
	return nil
}

// register registers p through a node.
func (s *story) register(ctx context.Context, p person, node int) error {
	begin := time.Now()
	image, err := photo(filepath.Join(s.cfg.Photos, p.photo))
	if err != nil {
		return err
	}
	var r registered
	err = s.client.do(ctx, request{
		method: http.MethodPost, url: s.info.BaseURLs[node], path: "/v1.1/subjects", key: "demo-" + filepath.Base(p.photo),
		in: map[string]any{"face": image}, out: &r,
	})
	if err != nil {
		return fmt.Errorf("enrol %s: %w", p.name, err)
	}
	s.names[r.ID], s.subjects[p.name] = p.name, r.ID
	s.screen.timed("✓", fmt.Sprintf("%-15s %-14s → %s   quality %s", p.name, filepath.Base(p.photo), s.name(node), hundredths(r.Attributes.FaceQualityScore)), time.Since(begin))
	return nil
}

// search asks a node whom a photo shows, and prints the answer. name is empty when
// nobody was found.
func (s *story) search(ctx context.Context, image string, node int) (name string, score int, err error) {
	begin := time.Now()
	probe, err := photo(filepath.Join(s.cfg.Photos, image))
	if err != nil {
		return "", 0, err
	}
	var f found
	err = s.client.do(ctx, request{
		method: http.MethodPost, url: s.info.BaseURLs[node], path: "/v1.1/face/search",
		in: map[string]any{"probe": probe}, out: &f,
	})
	asked := fmt.Sprintf("%s, asked at %s", filepath.Base(image), s.name(node))
	if r, ok := errors.AsType[*refusal](err); ok && r.Status == http.StatusNotFound {
		s.screen.timed("→", asked+": nobody", time.Since(begin))
		return "", 0, nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("search %s: %w", filepath.Base(image), err)
	}
	if len(f.Candidates) == 0 {
		return "", 0, errors.New("the search found candidates but names none")
	}
	best := f.Candidates[0]
	s.screen.timed("→", fmt.Sprintf("%s: %s, score %d", asked, s.names[best.ID], best.Score), time.Since(begin))
	return s.names[best.ID], best.Score, nil
}

// expect checks a promise of the story. If it does not hold, the demo fails.
func expect(got, want, photo string) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("the demo failed: %s was taken for %q, not %q", photo, got, want)
}

func (s *story) recognise(ctx context.Context) error {
	s.screen.head("Who is this? Another photo, other years, a third node")
	name, _, err := s.search(ctx, anotherObama, 2)
	if err != nil {
		return err
	}
	s.screen.aside("Scores go from 0 to 9999, 9999 being the same picture. From 7000 on facet")
	s.screen.aside("says: the same person.")
	return expect(name, obama.name, anotherObama)
}

func (s *story) stranger(ctx context.Context) error {
	s.screen.head("And this? %s, who is not enrolled", collins.name)
	name, _, err := s.search(ctx, collins.photo, 0)
	if err != nil {
		return err
	}
	return expect(name, "", collins.photo)
}

func (s *story) crowd(ctx context.Context) error {
	s.screen.head("A group photo")
	begin := time.Now()
	image, err := photo(filepath.Join(s.cfg.Photos, group))
	if err != nil {
		return err
	}
	var f struct {
		Faces []struct{} `json:"faces"`
	}
	err = s.client.do(ctx, request{
		method: http.MethodPost, url: s.info.BaseURLs[1], path: "/v1.1/face/extract",
		in: map[string]any{"faces": image}, out: &f,
	})
	if err != nil {
		return fmt.Errorf("extract %s: %w", group, err)
	}
	s.screen.timed("→", fmt.Sprintf("%s, asked at %s: %d faces", filepath.Base(group), s.name(1), len(f.Faces)), time.Since(begin))
	begin = time.Now()
	err = s.client.do(ctx, request{
		method: http.MethodPost, url: s.info.BaseURLs[1], path: "/v1.1/subjects", in: map[string]any{"face": image},
	})
	r, ok := errors.AsType[*refusal](err)
	if !ok || r.ErrorType != "MultipleFaces" {
		return fmt.Errorf("enrolling a group photo: got %w, want it refused for several faces", err)
	}
	s.screen.timed("✗", "enrolled as one person? Refused: "+r.ErrorType, time.Since(begin))
	return nil
}

// death kills the node that leads the shard of the searched person: the worst one
// to lose.
func (s *story) death(ctx context.Context) error {
	s.screen.head("A node dies")
	leader, shard, err := s.leaderOf(ctx, s.subjects[obama.name])
	if err != nil {
		return err
	}
	s.dead = leader
	victim := s.info.Nodes[leader]
	if err := syscall.Kill(victim.PID, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s: %w", victim.Name, err)
	}
	s.screen.timed("✗", fmt.Sprintf("%s led shard %d, where %s is kept: kill -9 %d", victim.Name, shard, obama.name, victim.PID), 0)
	alive := (leader + 1) % len(s.info.Nodes)
	name, _, err := s.search(ctx, thirdObama, alive)
	if err != nil {
		return err
	}
	if err := expect(name, obama.name, thirdObama); err != nil {
		return err
	}
	s.screen.aside("The others noticed, elected a new leader and answered. Once more, now that they have:")
	if _, _, err := s.search(ctx, thirdObama, alive); err != nil {
		return err
	}
	s.screen.aside("Two of three nodes are a majority, so they also learn:")
	return s.register(ctx, collins, alive)
}

// leaderOf returns the index of the node that leads the shard of a subject.
func (s *story) leaderOf(ctx context.Context, subject string) (int, id.Shard, error) {
	u, err := id.Parse(subject)
	if err != nil {
		return 0, 0, fmt.Errorf("read subject id: %w", err)
	}
	status, err := s.cluster.Admin().Status(ctx)
	if err != nil {
		return 0, 0, err
	}
	for _, n := range status.Nodes {
		for _, g := range n.Groups {
			if g.Group == u.Shard() && g.Role == "leader" {
				return s.index(n), u.Shard(), nil
			}
		}
	}
	return 0, 0, fmt.Errorf("shard %d has no leader", u.Shard())
}

func (s *story) index(n wire.Member) int {
	for i, known := range s.info.Nodes {
		if known.ID == n.ID {
			return i
		}
	}
	return 0
}

// comeback starts the killed node again and waits until it has caught up.
func (s *story) comeback(ctx context.Context) error {
	victim := s.info.Nodes[s.dead]
	s.screen.head("It comes back")
	begin := time.Now()
	if err := s.cluster.Restart(victim.Name); err != nil {
		return err
	}
	if err := s.cluster.WaitCaughtUp(ctx, victim.Name); err != nil {
		return err
	}
	s.screen.timed("✓", victim.Name+" runs again and has caught up with what it missed", time.Since(begin))
	name, score, err := s.search(ctx, collins.photo, s.dead)
	if err != nil {
		return err
	}
	if score == 9999 {
		s.screen.aside("%s was enrolled while it was dead. The same picture: 9999.", collins.name)
	}
	return expect(name, collins.name, collins.photo)
}

// hundredths formats a decimal of the interface with two digits.
func hundredths(decimal string) string {
	if len(decimal) > 4 {
		return decimal[:4]
	}
	return decimal
}
