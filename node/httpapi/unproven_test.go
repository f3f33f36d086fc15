package httpapi

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"facet/internal/must"
	"facet/node/sigv4"
)

// unsure returns an image request with a wrong signature.
func unsure(t testing.TB, as string, size int) string {
	t.Helper()
	raw := signed{as: as, method: "POST", target: "/v1.1/face/extract", body: strings.Repeat("A", size)}.raw(t)
	head, rest, _ := strings.Cut(raw, "Signature=")
	return head + "Signature=" + strings.Repeat("0", 64) + rest[64:]
}

// hold sends most of an image request with a wrong signature, and keeps the connection.
func (f *failing) hold(from, as string) *tls.Conn {
	f.t.Helper()
	const size = 700 << 10
	raw := unsure(f.t, as, size)
	c := f.dialOver(f.net.Host(from))
	go func() { _, _ = io.WriteString(c, raw[:len(raw)-size/3]) }() // ends with the connection
	return c
}

// image sends a request with a photo of some size from an address.
func (f *failing) image(from, as string, size int) received {
	f.t.Helper()
	q := extraction("img alice" + strings.Repeat(" ", size))
	q.as = as
	c := f.dialOver(f.net.Host(from))
	defer c.Close()
	if _, err := io.WriteString(c, q.raw(f.t)); err != nil && !errors.Is(err, syscall.EPIPE) { // a refusal may come first
		f.t.Fatal(err)
	}
	return read(f.t, bufio.NewReader(c), q.method)
}

// Half a body with the id of a tenant's access key and a wrong signature takes nothing from the tenant, and
// little from others at its address.
func TestUnprovenBodiesBelongToTheirAddress(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFailing(t, func(c *Config) { c.Limits.BodiesBytes = 8 << 20 })
		for range 45 {
			f.hold("10.0.0.9", "biometric")
		}
		synctest.Wait()
		used := f.server.bodies.Used()
		if used < 2<<20 || used > 4<<20 {
			t.Errorf("unproven bodies take %d bytes, want no more than half", used)
		}
		f.want("the tenant from its own address", f.image("10.0.0.1", "biometric", 300<<10), 200)
		f.want("another key from the address of the flood", f.image("10.0.0.9", "other", 100<<10), 200)
		f.want("the key that is flooded, at that address", f.image("10.0.0.9", "biometric", 500<<10), 429)
		f.want("small, at that address", f.health("10.0.0.9", "biometric", false), 200)
		f.want("proven there, so the tenant pays", f.image("10.0.0.9", "biometric", 500<<10), 200)
		time.Sleep(time.Minute)
		if synctest.Wait(); f.server.bodies.Used() != 0 || f.server.unproven.addresses.Used() != 0 || len(f.server.unproven.keys) != 0 {
			t.Errorf("%d bytes are counted when all bodies have ended", f.server.bodies.Used())
		}
	})
}

// A body that stops is a wrong signature for the client's next tries.
func TestEndlessBodyCountsAsWrongSignature(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFailing(t, nil)
		for i := range failuresBurst {
			c, want := f.hold("10.0.0.9", "biometric"), 408
			if i%2 == 0 { // the connection ends instead
				synctest.Wait()
				must.Do(t, c.CloseWrite())
				want = 400
			}
			if a := read(t, bufio.NewReader(c), "POST"); a.status != want || !a.closed {
				t.Fatalf("got %d, closed %v, want %d, closed", a.status, a.closed, want)
			}
		}
		f.want("one more", f.health("10.0.0.9", "biometric", true), 429)
		f.want("another address", f.health("10.0.0.1", "biometric", false), 200)
	})
}

// Where a right signature was seen lately, wrong ones can't take the tenant's memory for long.
func TestTooManyWrongSignaturesEndTheTenantsPart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFailing(t, func(c *Config) { c.Limits.BodiesBytes = 8 << 20 })
		f.want("a right one", f.health("10.0.0.9", "biometric", false), 200)
		for range failuresBurst {
			f.want("a wrong one", f.health("10.0.0.9", "biometric", true), 403)
		}
		f.hold("10.0.0.9", "biometric")
		if synctest.Wait(); f.server.unproven.addresses.Used() == 0 || f.server.bodies.Used() != f.server.unproven.addresses.Used() {
			t.Errorf("%d bytes are the address's, want all %d", f.server.unproven.addresses.Used(), f.server.bodies.Used())
		}
	})
}

// An access key that is revoked while a body comes is revoked for it.
func TestRevocationHoldsForSlowBody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFailing(t, nil)
		q := extraction("img alice")
		hash := sha256.Sum256([]byte(q.body))
		for _, headers := range [][]sigv4.Header{nil, {{Name: "x-amz-content-sha256", Value: hex.EncodeToString(hash[:])}}} {
			q.headers = headers
			raw := q.raw(t)
			c := f.dial()
			write(t, c, raw[:len(raw)-1])
			time.Sleep(2 * time.Second)
			key := f.service.keys["biometric"]
			delete(f.service.keys, "biometric")
			write(t, c, raw[len(raw)-1:])
			f.want("the request", read(t, bufio.NewReader(c), "POST"), 403)
			f.service.keys["biometric"] = key
		}
	})
}

// A body needs 64 KiB in each five seconds, and comes in four minutes.
func TestSteadyBodyIsTakenAndDripIsNot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := func(what string, size, piece, status int) {
			t.Helper()
			r := start(t, nil)
			raw := extraction("img alice" + strings.Repeat(" ", size)).raw(t)
			c := r.dial()
			must.Do(t, c.SetDeadline(time.Now().Add(10*time.Minute)))
			go func() { // ends with the connection
				for len(raw) > 0 {
					n := min(piece, len(raw))
					if _, err := io.WriteString(c, raw[:n]); err != nil {
						return
					}
					raw = raw[n:]
					time.Sleep(100 * time.Millisecond)
				}
			}()
			if a := read(t, bufio.NewReader(c), "POST"); a.status != status {
				t.Errorf("%s: got %d %s, want %d", what, a.status, a.body, status)
			}
		}
		f("3 MB with 120 kB/s", 3_000_000*3/4, 12_000, 200)
		f("300 kB with 12 kB/s", 300_000, 1200, 408)
		f("6 MB with 20 kB/s, after four minutes", 6_000_000*3/4, 2000, 408)
	})
}

// A request that states the hash of its body, and signs it, is checked before its body has come.
func TestStatedHashIsCheckedBeforeBody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := start(t, func(c *Config) { c.Limits.BodiesBytes = 1 << 20 })
		body := extraction("img alice" + strings.Repeat(" ", 600<<10)).body
		stating := func(of string) string {
			sum := sha256.Sum256([]byte(of))
			return signed{as: "biometric", method: "POST", target: "/v1.1/face/extract", body: body, headers: []sigv4.Header{
				{Name: "x-amz-content-sha256", Value: hex.EncodeToString(sum[:])},
			}}.raw(t)
		}
		raw := stating(body)
		head, rest, _ := strings.Cut(raw, "Signature=")
		wrong := head + "Signature=" + strings.Repeat("0", 64) + rest[64:]
		c := r.dial()
		write(t, c, wrong[:len(wrong)-len(body)+1])
		began := time.Now()
		if a := read(t, bufio.NewReader(c), "POST"); a.status != 403 || time.Since(began) > drainTime {
			t.Errorf("a wrong signature: %d after %v", a.status, time.Since(began))
		}
		if most := r.server.Load().BodyMost; most != 0 {
			t.Errorf("a wrong signature took %d bytes", most)
		}
		if a := r.exchange(stating("another body"), "POST"); a.status != 403 {
			t.Errorf("another body: %d %s", a.status, a.body)
		}
		// More than unproven bodies may have: the tenant pays for it from the beginning.
		if a := r.exchange(raw, "POST"); a.status != 200 {
			t.Errorf("a right one: %d %s", a.status, a.body)
		}
	})
}

// Each IPv6 site is one address.
func TestUnprovenBodiesOfSiteAreTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFailing(t, func(c *Config) { c.Limits.BodiesBytes = 8 << 20 })
		for _, host := range []string{"2001:db8::1", "2001:db8::2", "2001:db8::3"} {
			f.hold(host, "biometric")
		}
		synctest.Wait()
		if n := len(f.server.unproven.keys); n != 1 {
			t.Errorf("%d addresses are counted, want the site", n)
		}
	})
}
