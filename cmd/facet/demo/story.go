package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"facet.internal/client"
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
	clients  []*client.Client // one for each node
	apiKey   string

	names    map[string]string // person by subject id
	subjects map[string]string // subject id by person
	dead     int               // index of the killed node
}

func (s *story) name(node int) string { return s.info.Nodes[node].Name }

func (s *story) gallery(ctx context.Context) error {
	s.screen.head("A gallery")
	begin := time.Now()
	made, err := s.clients[0].CreateGallery(ctx, client.NewGallery{
		Name: "Demo", Description: "people of the demo", FaceMinimumQualityScore: 0.45, Size: gallerySize,
	})
	if err != nil {
		return fmt.Errorf("create the gallery: %w", err)
	}
	s.apiKey = made.APIKey
	for i, c := range s.clients {
		s.clients[i] = c.WithAPIKey(made.APIKey)
	}
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
	s.screen.aside("The node finds the face, straightens it, turns it into 128 numbers, and stores")
	s.screen.aside("them on a majority of nodes before it answers. No photo is kept.")
	return nil
}

// photo returns the bytes of a sample photo.
func (s *story) photo(name string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(s.cfg.Photos, name))
	if err != nil {
		return nil, fmt.Errorf("read photo: %w", err)
	}
	return b, nil
}

// register registers p through a node.
func (s *story) register(ctx context.Context, p person, node int) error {
	begin := time.Now()
	image, err := s.photo(p.photo)
	if err != nil {
		return err
	}
	r, err := s.clients[node].Register(ctx, client.Photo{Image: image})
	if err != nil {
		return fmt.Errorf("enrol %s: %w", p.name, err)
	}
	s.names[r.ID], s.subjects[p.name] = p.name, r.ID
	s.screen.timed("✓", fmt.Sprintf("%-15s %-14s → %s   quality %.2f", p.name, filepath.Base(p.photo), s.name(node), r.Attributes.FaceQualityScore), time.Since(begin))
	return nil
}

// search asks a node whom a photo shows, and prints the answer. name is empty when
// nobody was found.
func (s *story) search(ctx context.Context, image string, node int) (name string, score int, err error) {
	begin := time.Now()
	probe, err := s.photo(image)
	if err != nil {
		return "", 0, err
	}
	found, err := s.clients[node].Search(ctx, client.SearchQuery{Probe: probe})
	if err != nil {
		return "", 0, fmt.Errorf("search %s: %w", filepath.Base(image), err)
	}
	asked := fmt.Sprintf("%s, asked at %s", filepath.Base(image), s.name(node))
	if len(found.Candidates) == 0 {
		s.screen.timed("→", asked+": nobody", time.Since(begin))
		return "", 0, nil
	}
	best := found.Candidates[0]
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
	s.screen.aside("Scores run from 0 to 9999, and 9999 is the same picture. From 7000 on facet")
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
	image, err := s.photo(group)
	if err != nil {
		return err
	}
	faces, err := s.clients[1].Extract(ctx, image, 0)
	if err != nil {
		return fmt.Errorf("extract %s: %w", group, err)
	}
	s.screen.timed("→", fmt.Sprintf("%s, asked at %s: %d faces", filepath.Base(group), s.name(1), len(faces)), time.Since(begin))
	begin = time.Now()
	_, err = s.clients[1].Register(ctx, client.Photo{Image: image})
	refused, ok := errors.AsType[*client.Error](err)
	if !ok || !refused.Is(client.ErrMultipleFaces) {
		return fmt.Errorf("enrolling a group photo: got %w, want it refused for several faces", err)
	}
	s.screen.timed("✗", "enrolled as one person? Refused: "+refused.Type, time.Since(begin))
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
