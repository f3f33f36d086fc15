package cluster

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"facet/cmd/facet/dev"
	"facet/node/wire"
)

const (
	scrapeTimeout = 10 * time.Second
	pageMax       = 8 << 20
)

// Figures are the sums of the nodes' metrics, by name and labels.
type Figures map[string]float64

// Scrape reads and sums the metrics of all nodes.
func Scrape(ctx context.Context, i dev.Info, config *tls.Config) (Figures, error) {
	config = config.Clone()
	config.InsecureSkipVerify = true //nolint:gosec // a node's certificate names it, and not its address, which is loopback
	client := http.Client{Timeout: scrapeTimeout, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	sum := Figures{}
	for _, n := range i.Nodes {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+n.Admin+wire.PathMetrics, nil)
		if err != nil {
			return nil, err
		}
		a, err := client.Do(r)
		if err != nil {
			return nil, fmt.Errorf("read metrics: %w", err)
		}
		sum.Read(io.LimitReader(a.Body, pageMax))
		a.Body.Close()
	}
	return sum, nil
}

// Read adds the metrics of one page.
func (f Figures) Read(page io.Reader) {
	for s := bufio.NewScanner(page); s.Scan(); {
		name, text, ok := cutLast(s.Text(), " ")
		value, err := strconv.ParseFloat(text, 64)
		if ok && err == nil && !strings.HasPrefix(name, "#") {
			f[name] += value
		}
	}
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// Mean returns the mean, in milliseconds, and the number of the values that a histogram
// has counted since before.
func (f Figures) Mean(before Figures, name, labels string) (ms, count float64) {
	sum := f[name+"_sum"+labels] - before[name+"_sum"+labels]
	count = f[name+"_count"+labels] - before[name+"_count"+labels]
	return sum / max(count, 1) * 1e3, count
}
