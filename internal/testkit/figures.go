package testkit

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"facet/node/wire"
)

// scrapeTimeout is the longest that the metrics of all nodes may take.
const scrapeTimeout = time.Minute

// Figures are the sums of the nodes' metrics, by name and labels.
type Figures map[string]float64

// Scrape reads and sums the metrics at admin addresses.
func Scrape(ctx context.Context, admins ...string) (Figures, error) {
	config := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // a node's certificate names it, and not its address, which is loopback
	c := Client{HTTP: &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}}
	return c.Scrape(ctx, admins...)
}

// Scrape reads and sums the metrics at admin addresses over the client's connections.
func (c *Client) Scrape(ctx context.Context, admins ...string) (Figures, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	sum := Figures{}
	for _, admin := range admins {
		a, err := c.Send(ctx, "https://"+admin, Request{Method: http.MethodGet, Target: wire.PathMetrics})
		if err == nil && a.Status != http.StatusOK {
			err = fmt.Errorf("got %d %.200s", a.Status, a.Body)
		}
		if err != nil {
			return nil, fmt.Errorf("read the metrics of %s: %w", admin, err)
		}
		sum.Read(bytes.NewReader(a.Body))
	}
	return sum, nil
}

// Read adds the metrics of one page.
func (f Figures) Read(page io.Reader) {
	for s := bufio.NewScanner(page); s.Scan(); {
		line := s.Text()
		space := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(line[space+1:], 64)
		if space > 0 && err == nil && !strings.HasPrefix(line, "#") {
			f[line[:space]] += value
		}
	}
}

// Mean returns the mean, in milliseconds, and the number of the values that a histogram
// has counted since before.
func (f Figures) Mean(before Figures, name, labels string) (ms, count float64) {
	sum := f[name+"_sum"+labels] - before[name+"_sum"+labels]
	count = f[name+"_count"+labels] - before[name+"_count"+labels]
	return sum / max(count, 1) * 1e3, count
}
