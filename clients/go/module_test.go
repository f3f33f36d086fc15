package client_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// consumer is a program of another module.
const consumer = `package main

import (
	"context"
	"fmt"
	"os"

	"facet.internal/client"
)

func main() {
	c, err := client.FromDev(os.Args[1])
	if err != nil {
		panic(err)
	}
	defer c.Close()
	g, err := c.CreateGallery(context.Background(), client.NewGallery{Name: os.Args[2], FaceMinimumQualityScore: 0.45, Size: 10})
	if err != nil {
		panic(err)
	}
	fmt.Println("key", g.APIKey != "")
}
`

// The other module gets the client from a GOPROXY folder, without a replace.
func TestOtherModuleUsesTheClient(t *testing.T) {
	dir := t.TempDir()
	connection, err := filepath.Abs(filepath.Join("dev", "dev.json"))
	must(t, err)
	run := func(in string, name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = in
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOSUMDB=off", "GOTOOLCHAIN=local", "GOFLAGS=-mod=mod -modcacherw",
			"GOMODCACHE="+filepath.Join(dir, "cache"), "GOPROXY=file://"+filepath.ToSlash(filepath.Join(dir, "dist", "go")))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	root := filepath.Dir(filepath.Dir(folder))
	pack := exec.CommandContext(t.Context(), "go", "run", "./scripts/clients", "-python=", "-npm=", "-to", filepath.Join(dir, "dist"))
	pack.Dir = root
	if out, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("pack: %v\n%s", err, out)
	}
	app := filepath.Join(dir, "app")
	must(t, os.Mkdir(app, 0o700))
	must(t, os.WriteFile(filepath.Join(app, "main.go"), []byte(consumer), 0o600))
	run(app, "go", "mod", "init", "example.org/app")
	run(app, "go", "get", "facet.internal/client")
	run(app, "go", "build", "-o", "app")
	if mod, err := os.ReadFile(filepath.Join(app, "go.mod")); err != nil || strings.Contains(string(mod), "replace") {
		t.Errorf("go.mod: %v\n%s", err, mod)
	}
	if out := run(dir, filepath.Join(app, "app"), connection, "consumer"); out != "key true\n" {
		t.Errorf("the program says %q", out)
	}
}
