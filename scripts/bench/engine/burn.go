package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"facet/scripts/bench/https"
	"facet/scripts/bench/machine"
)

// BurnCommand is the argument that makes this program run a burner instead of a
// benchmark.
const BurnCommand = "burn"

// burner is a server in a process of its own. For each request it takes as much
// processor time as the request's target says, and then answers. Each core works on one
// request at a time. No service on this machine can do better.
type burner struct {
	client *https.Client
	cmd    *exec.Cmd
	in     io.Closer // closing it ends the burner
}

// burnerInfo is the line that a burner prints when it serves.
type burnerInfo struct {
	URL         string
	Certificate []byte // DER
}

func startBurner() (b *burner, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b = &burner{cmd: exec.Command(self, BurnCommand)}
	b.cmd.Stderr = os.Stderr
	in, err1 := b.cmd.StdinPipe()
	out, err2 := b.cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	b.in = in
	if err := b.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the burner: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	var info burnerInfo
	if err := json.NewDecoder(out).Decode(&info); err != nil {
		return nil, fmt.Errorf("wait for the burner: %w", err)
	}
	certificate, err := x509.ParseCertificate(info.Certificate)
	if err != nil {
		return nil, fmt.Errorf("read the burner's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	b.client = &https.Client{URL: info.URL, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}
	return b, nil
}

func (b *burner) close() error { return errors.Join(b.in.Close(), b.cmd.Wait()) }

// operation returns an operation with o's body that makes the burner take the time d.
func (b *burner) operation(o https.Operation, d time.Duration) https.Operation {
	o.Target = "/" + strconv.FormatInt(max(0, d.Nanoseconds()), 10)
	return o
}

// ServeBurns runs the burner. It returns when its standard input or ctx ends.
func ServeBurns(ctx context.Context, out io.Writer) error {
	permits := make(chan struct{}, runtime.GOMAXPROCS(0))
	// One more than the cores, as a node has: while all cores are busy, one thread must
	// serve the network.
	runtime.GOMAXPROCS(cap(permits) + 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ns, err := strconv.ParseInt(r.URL.Path[1:], 10, 64)
		var body bytes.Buffer
		if _, err2 := body.ReadFrom(r.Body); errors.Join(err, err2) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		permits <- struct{}{}
		burn(time.Duration(ns))
		<-permits
	}))
	defer server.Close()
	if err := json.NewEncoder(out).Encode(burnerInfo{server.URL, server.Certificate().Raw}); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	go func() { // ends with standard input
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	<-ctx.Done()
	return nil
}

// burn takes d of processor time on its thread.
func burn(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var block [16 << 10]byte
	for end := machine.ThreadTime() + d; machine.ThreadTime() < end; {
		sum := sha256.Sum256(block[:])
		copy(block[:], sum[:])
	}
}
