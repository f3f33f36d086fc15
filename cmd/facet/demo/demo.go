package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"facet.internal/client"
	"facet/cmd/facet/config"
	"facet/cmd/facet/console"
	"facet/cmd/facet/dev"
	"facet/cmd/facet/process"
)

// Config configures the demo.
type Config struct {
	Dir    string // the cluster's folder; an earlier demo's is replaced
	Photos string // the folder with the sample photos
	Binary string // the facet that the nodes run
	Assets config.Assets
	// Stay keeps the cluster running at the end, until ctx ends.
	Stay bool
	Out  *os.File
}

// StayDefault reports whether the cluster should keep running: a person is at the
// terminal and DEMO_EXIT is not 1.
func StayDefault() bool {
	return process.IsTerminal(os.Stdin) && process.IsTerminal(os.Stdout) && os.Getenv("DEMO_EXIT") != "1"
}

// people are the persons on the sample photos.
var (
	obama   = person{"Barack Obama", "face_recognition/obama.jpg"}
	biden   = person{"Joe Biden", "face_recognition/biden.jpg"}
	collins = person{"Eileen Collins", "scikit-image/astronaut.png"}
)

const (
	anotherObama = "face_recognition/obama2.jpg"
	thirdObama   = "face_recognition/obama3.jpg"
	group        = "face-api/sample1.jpg"
	gallerySize  = 100
)

type person struct{ name, photo string }

// Run prints the story while it happens.
func Run(ctx context.Context, cfg Config) (err error) {
	for _, p := range []string{obama.photo, biden.photo, collins.photo, anotherObama, thirdObama, group} {
		if _, err := os.Stat(filepath.Join(cfg.Photos, p)); err != nil {
			return fmt.Errorf("the sample photo %s is missing: run \"make setup\"", p)
		}
	}
	if err := dev.Remove(cfg.Dir); err != nil {
		return err
	}
	s := &story{cfg: cfg, screen: newScreen(cfg.Out), names: map[string]string{}, subjects: map[string]string{}}
	if err := s.start(ctx); err != nil {
		return err
	}
	defer func() {
		if e := s.cluster.Close(); err == nil {
			err = e
		}
	}()
	for _, chapter := range []func(context.Context) error{
		s.gallery, s.enrol, s.recognise, s.stranger, s.crowd, s.death, s.comeback,
	} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	if err := s.tryYourself(); err != nil {
		return err
	}
	if cfg.Stay {
		pages, err := console.OpenDev(s.cluster, cfg.Out)
		if err != nil {
			return err
		}
		s.screen.tell("Or open the console in a browser, by an address that works once:")
		fmt.Fprintf(s.screen.w, "\n  %s\n\n", pages.Address())
		s.messages.on(cfg.Out)
		<-ctx.Done()
		fmt.Fprintln(cfg.Out, "\n   stopping …")
		return pages.Close()
	}
	return nil
}

// gate drops the cluster's own messages until it is opened.
type gate struct {
	mu sync.Mutex // guards w
	w  io.Writer
}

func (g *gate) on(w io.Writer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.w = w
}

// Write passes p on, or drops it.
func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.w == nil {
		return len(p), nil
	}
	return g.w.Write(p)
}

// start starts the cluster: the first chapter.
func (s *story) start(ctx context.Context) error {
	s.screen.title("facet finds faces")
	s.screen.head("Three nodes")
	begin := time.Now()
	cluster, err := dev.Open(ctx, dev.Config{
		Dir: s.cfg.Dir, Nodes: 3, Binary: s.cfg.Binary, Assets: s.cfg.Assets, Out: &s.messages,
	})
	if err != nil {
		return err
	}
	s.cluster, s.info = cluster, cluster.Info()
	for _, n := range s.info.Nodes {
		c, err := client.New(client.Config{
			BaseURLs: []string{n.URL}, CAFile: s.info.CAFile, AccessKey: s.info.AccessKey, SecretKey: s.info.SecretKey,
			Region: s.info.Region, Service: s.info.Service,
		})
		if err != nil {
			return err
		}
		s.clients = append(s.clients, c)
	}
	took := time.Since(begin)
	for i, n := range s.info.Nodes {
		if i < len(s.info.Nodes)-1 {
			s.screen.timed("✓", n.Name+"  "+n.URL, 0)
			continue
		}
		s.screen.timed("✓", n.Name+"  "+n.URL, took)
	}
	s.screen.aside("Three processes. Each loaded the face models; together they hold %d shards,", dev.ShardsDefault)
	s.screen.aside("every shard three times. Raft keeps the copies equal. Any node takes any request.")
	return nil
}

// tryYourself prints commands to paste.
func (s *story) tryYourself() error {
	conf, err := s.cluster.WriteCurl("x-api-key: " + s.apiKey)
	if err != nil {
		return err
	}
	s.screen.head("Your turn")
	if s.cfg.Stay {
		s.screen.tell("The cluster keeps running until you press Ctrl-C. In another terminal:")
	} else {
		s.screen.tell("The cluster stops now. Start it again, with its faces, by")
		s.screen.tell("  %s dev --dir %s", relative(s.cfg.Binary), relative(s.cfg.Dir))
		s.screen.tell("and then:")
	}
	for _, line := range curlLines(relative(conf), s.info.BaseURLs, relative(s.cfg.Photos)) {
		fmt.Fprintln(s.screen.w, line)
	}
	fmt.Fprintln(s.screen.w)
	return nil
}

// curlLines returns requests to paste into a shell.
func curlLines(conf string, urls []string, photos string) []string {
	curl := "curl -K " + quote(conf) + " "
	send := func(photo, field, path string, node int) string {
		return fmt.Sprintf(`  printf '{"%s":"%%s"}' "$(base64 < %s | tr -d '\n')" | %s--json @- %s%s`,
			field, quote(filepath.Join(photos, photo)), curl, urls[node], path)
	}
	return []string{
		"",
		"  # how are you, and whom do you know?",
		"  " + curl + urls[0] + "/v1.1/health",
		"  " + curl + urls[1] + "/v1.1/subjects",
		"  # who is this?",
		send(anotherObama, "probe", "/v1.1/face/search", 2),
		"  # how many faces?",
		send("face-api/sample5.jpg", "faces", "/v1.1/face/extract", 0),
		"  # remember this one",
		send(thirdObama, "face", "/v1.1/subjects", 1),
	}
}

// quote returns path as one word of a shell.
func quote(path string) string {
	if !strings.ContainsFunc(path, func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-+,:@", r)
	}) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// relative returns path relative to the working directory, when that is shorter.
func relative(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(here, full); err == nil && len(rel) < len(full) {
		return rel
	}
	return full
}
