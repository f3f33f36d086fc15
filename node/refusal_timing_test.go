package node_test

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"testing"
	"time"

	"facet/internal/id"
	"facet/internal/must"
	"facet/node/nodetest"
	"facet/node/sigv4"
)

// BenchmarkRefusal compares the times of refusals for a known access key with a wrong
// signature and for unknown access keys, on a node that does not lead meta. It reports
// the ratio of their means and Welch's |t|.
func BenchmarkRefusal(b *testing.B) {
	c := nodetest.Start(b, nodetest.Options{})
	key, err := c.CreateTenant("timed")
	must.Do(b, err)
	node := c.Nodes[0]
	for _, n := range c.Nodes {
		if !n.Node.Leads(id.Meta) {
			node = n
		}
	}
	var known, unknown sample
	n := 0
	for b.Loop() {
		n++
		if rand.IntN(2) == 0 { // a fixed order would be seen in the gate's intervals
			known.add(timeRefusal(b, node, key.ID, n))
		} else {
			unknown.add(timeRefusal(b, node, fmt.Sprintf("%s%d", key.ID[:len(key.ID)-8], 10_000_000+n), n))
		}
	}
	b.ReportMetric(unknown.mean()/known.mean(), "unknown/known")
	b.ReportMetric(math.Abs(known.mean()-unknown.mean())/math.Sqrt(known.variance()/known.n+unknown.variance()/unknown.n), "|t|")
}

// timeRefusal returns the milliseconds of the n-th refusal. The client's address changes
// every few requests, because a node slows one that fails again and again.
func timeRefusal(b *testing.B, to *nodetest.Member, accessKey string, n int) float64 {
	b.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(n>>10), byte(n>>2))}}
	conn, err := tls.DialWithDialer(&dialer, "tcp", to.Config.PublicAddress, &tls.Config{InsecureSkipVerify: true})
	must.Do(b, err)
	defer conn.Close()
	must.Do(b, conn.Handshake())
	headers := []sigv4.Header{{Name: "host", Value: to.Config.PublicAddress}}
	more, err := sigv4.Signer{
		Region: sigv4.RegionDefault, Service: sigv4.ServiceDefault, AccessKey: accessKey, SecretKey: "wrong",
	}.Sign(sigv4.Request{Method: http.MethodGet, Target: "/v1.1/health", Headers: headers}, sha256.Sum256(nil), time.Now())
	must.Do(b, err)
	text := "GET /v1.1/health HTTP/1.1\r\n"
	for _, h := range append(headers, more...) {
		text += h.Name + ": " + h.Value + "\r\n"
	}
	began := time.Now()
	if _, err := io.WriteString(conn, text+"\r\n"); err != nil {
		b.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must.Do(b, err)
	took := time.Since(began)
	if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusForbidden {
		b.Fatalf("got %d, %v", answer.StatusCode, err)
	}
	return float64(took) / float64(time.Millisecond)
}

// sample holds the sums of measurements.
type sample struct{ n, sum, squares float64 }

func (s *sample) add(x float64) { s.n, s.sum, s.squares = s.n+1, s.sum+x, s.squares+x*x }

func (s *sample) mean() float64 { return s.sum / s.n }

func (s *sample) variance() float64 { return (s.squares/s.n - s.mean()*s.mean()) * s.n / max(s.n-1, 1) }
