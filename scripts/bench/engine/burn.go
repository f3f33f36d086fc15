package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// burnerName is the server name of the burner's certificate.
const burnerName = "127.0.0.1"

// burner is a server in a process of its own that reads a request, takes as much
// processor time as the request's target tells, one request a core at a time, and
// answers: what this machine can do at best, its other work included.
type burner struct {
	client *client
	cmd    *exec.Cmd
	in     io.Closer // its end is the burner's
}

// burnerInfo is what a burner tells when it serves.
type burnerInfo struct {
	Address     string
	Certificate []byte // PEM
}

func startBurner() (b *burner, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b = &burner{cmd: exec.Command(self, "-parts", burnPart)}
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
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(info.Certificate)
	b.client = &client{host: info.Address, tls: &tls.Config{RootCAs: roots, ServerName: burnerName, MinVersion: tls.VersionTLS13}}
	return b, nil
}

func (b *burner) close() error { return errors.Join(b.in.Close(), b.cmd.Wait()) }

// operation is o's body with the order to burn so long.
func (b *burner) operation(o operation, d time.Duration) operation {
	o.target = "/" + strconv.FormatInt(max(0, d.Nanoseconds()), 10)
	return o
}

// serveBurns is the burner's process; it ends with its standard input.
func serveBurns(ctx context.Context, out io.Writer) error {
	permits := make(chan struct{}, runtime.GOMAXPROCS(0))
	// As a node does: while all cores are busy, somebody must look at the network.
	runtime.GOMAXPROCS(cap(permits) + 1)
	certificate, text, err := newCertificate()
	if err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(burnerName, "0"), &tls.Config{
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13,
	})
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ns, err := strconv.ParseInt(r.URL.Path[1:], 10, 64)
		var body bytes.Buffer
		if _, err2 := body.ReadFrom(r.Body); errors.Join(err, err2) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		permits <- struct{}{}
		burn(time.Duration(ns))
		<-permits
	})}
	go func() { // ends with standard input or the context, which end the server
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
		_ = server.Close()
	}()
	if err := json.NewEncoder(out).Encode(burnerInfo{listener.Addr().String(), text}); err != nil {
		return err
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// burn takes d of its thread's processor time.
func burn(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var block [16 << 10]byte
	for end := threadTime() + d; threadTime() < end; {
		sum := sha256.Sum256(block[:])
		copy(block[:], sum[:])
	}
}

// threadTime is the processor time that the calling thread has taken.
func threadTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // every Linux has it
	return time.Duration(t.Nano())
}

func newCertificate() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.ParseIP(burnerName)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
