package client_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// startTimeout is the longest time for the start or the stop of the cluster.
const startTimeout = 90 * time.Second

var (
	facet  = flag.String("facet", "../../bin/facet", "the program that the cluster runs")
	folder string // of this module
)

func init() {
	// The cluster dies with the thread that started it (orphan_linux_test.go). So the
	// main thread starts it, which lives as long as the process.
	runtime.LockOSThread()
}

// TestMain starts a real cluster of three processes of the built facet for the
// tests. The examples find dev/dev.json and assets/photos in the working directory.
func TestMain(m *testing.M) {
	flag.Parse()
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "client tests:", err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (code int, err error) {
	if folder, err = os.Getwd(); err != nil {
		return 0, err
	}
	root := filepath.Dir(filepath.Dir(folder))
	if openapi, err = os.ReadFile(filepath.Join(root, "node", "httpapi", "openapi", "openapi.json")); err != nil {
		return 0, err
	}
	program, err := filepath.Abs(*facet)
	if err != nil {
		return 0, err
	}
	photos := filepath.Join(root, "assets", "photos")
	for _, needed := range []string{program, photos} {
		if _, err := os.Stat(needed); err != nil {
			return 0, fmt.Errorf("%w: run \"make setup build\" first", err)
		}
	}
	dir, err := os.MkdirTemp("", "facet-client-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if err := os.Symlink(filepath.Dir(photos), filepath.Join(dir, "assets")); err != nil {
		return 0, err
	}
	if err := os.Chdir(dir); err != nil {
		return 0, err
	}
	stop, err := startCluster(program)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	return m.Run(), nil
}

// startCluster runs `facet dev` until stop is called.
func startCluster(program string) (stop func() error, err error) {
	log, err := os.Create("dev.log")
	if err != nil {
		return nil, err
	}
	defer log.Close()
	dev := exec.Command(program, "dev", "--dir", "dev", "--nodes", "3", "--shards", "2")
	dev.Stdout, dev.Stderr = log, log
	dieWithUs(dev)
	if err := dev.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- dev.Wait() }()
	stop = func() error {
		_ = dev.Process.Signal(os.Interrupt) // it may have ended
		select {
		case err := <-ended:
			return err
		case <-time.After(startTimeout):
			_ = dev.Process.Kill()
			return errors.New("facet dev did not stop")
		}
	}
	late := time.After(startTimeout)
	for {
		if _, err := os.Stat(filepath.Join("dev", "dev.json")); err == nil {
			return stop, nil
		}
		select {
		case err := <-ended:
			said, _ := os.ReadFile("dev.log")
			return nil, fmt.Errorf("facet dev ended: %w\n%s", err, said)
		case <-late:
			return nil, errors.Join(errors.New("facet dev did not start"), stop())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
