package service

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
	"facet/scripts/bench/https"
)

const (
	scrapeTimeout = 10 * time.Second
	pageMax       = 8 << 20
)

// figures are the sums of the nodes' metrics, by name and labels.
type figures map[string]float64

// scrape reads and sums the metrics of all nodes.
func scrape(ctx context.Context, i dev.Info, config *tls.Config) (figures, error) {
	config = config.Clone()
	config.InsecureSkipVerify = true //nolint:gosec // a node's certificate names it, and not its address, which is loopback
	client := http.Client{Timeout: scrapeTimeout, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	sum := figures{}
	for _, n := range i.Nodes {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+n.Admin+wire.PathMetrics, nil)
		if err != nil {
			return nil, err
		}
		a, err := client.Do(r)
		if err != nil {
			return nil, fmt.Errorf("read metrics: %w", err)
		}
		sum.read(io.LimitReader(a.Body, pageMax))
		a.Body.Close()
	}
	return sum, nil
}

// read adds the metrics of one page.
func (f figures) read(page io.Reader) {
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

// mean returns the mean, in milliseconds, and the number of the values that a histogram
// has counted since before.
func (f figures) mean(before figures, name, labels string) (ms, count float64) {
	sum := f[name+"_sum"+labels] - before[name+"_sum"+labels]
	count = f[name+"_count"+labels] - before[name+"_count"+labels]
	return sum / max(count, 1) * 1e3, count
}

// stages are the mean times of the stages of a search, in milliseconds.
type stages struct {
	request, extract, shards, shard, merge float64
}

func stagesOf(before, after figures) (s stages) {
	s.request, _ = after.mean(before, "facet_request_duration_seconds", `{operation="POST `+https.SearchPath+`"}`)
	for name, to := range map[string]*float64{"extract": &s.extract, "shards": &s.shards, "merge": &s.merge} {
		*to, _ = after.mean(before, "facet_search_duration_seconds", `{stage="`+name+`"}`)
	}
	s.shard, _ = after.mean(before, "facet_shard_search_duration_seconds", "")
	return s
}
