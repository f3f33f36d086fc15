package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestDemoRunsAndPrintsRequests(t *testing.T) {
	t.Parallel()
	here := t.TempDir()
	demo := exec.Command(program(), "demo")
	demo.Dir = here
	out, err := demo.CombinedOutput()
	story := string(out)
	if err != nil {
		t.Fatalf("%v\n%s", err, story)
	}
	if strings.Contains(story, "\x1b") {
		t.Error("colours without a terminal")
	}
	for _, sentence := range []string{"Barack Obama, score", ": nobody", "3 faces", "kill -9", "caught up", "Eileen Collins, score 9999"} {
		if !strings.Contains(story, sentence) {
			t.Errorf("the story lacks %q", sentence)
		}
	}
	dir := filepath.Join(here, "demo-data")
	wantStopped(t, dir)

	// Without a terminal the demo has stopped its cluster. It starts again as the
	// story says.
	c := startDev(t, dir)
	answers := 0
	for line := range strings.Lines(story) {
		line = strings.TrimSpace(line)
		if !strings.Contains(line, "curl -K") {
			continue
		}
		bash := exec.Command("bash", "-c", line)
		bash.Dir = here
		got, err := bash.CombinedOutput()
		text := string(got)
		if err != nil || !strings.HasPrefix(text, "{") || strings.Contains(text, `"errorCode"`) || strings.Contains(text, `"message"`) {
			t.Errorf("%.200s …: %v, %.300s", line, err, text)
		}
		answers++
	}
	if answers != 5 {
		t.Errorf("%d lines to try, want 5", answers)
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
	again := exec.Command(program(), "demo", "--dir", dir, "--photos", filepath.Join(here, "none"))
	if got, err := again.CombinedOutput(); err == nil || !strings.Contains(string(got), "make setup") {
		t.Errorf("without photos: %v, %s", err, got)
	}
}
