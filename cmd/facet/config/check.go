package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"

	"facet/node"
	"facet/node/httpapi"
)

// checkAddresses checks addresses and URLs. An error doesn't show a URL, which may have a password.
func (s Settings) checkAddresses() error {
	var wrong Problems
	for _, a := range []struct {
		name, address string
		empty         bool // may be empty
	}{
		{"peer-address", s.PeerAddress, false},
		{"peer-advertise", s.PeerAdvertise, true},
		{"public-address", s.PublicAddress, false},
		{"admin-address", s.AdminAddress, false},
	} {
		if a.empty && a.address == "" {
			continue
		}
		_, port, err := net.SplitHostPort(a.address)
		if err == nil {
			_, err = net.LookupPort("tcp", port)
		}
		if err != nil {
			wrong.add(fmt.Errorf("--%s is HOST:PORT or :PORT, not %q", a.name, a.address))
		}
	}
	if host, port, err := net.SplitHostPort(s.Advertised()); err == nil {
		switch ip := net.ParseIP(host); {
		case host != "" && (ip == nil || !ip.IsUnspecified()) && port != "0":
		case s.PeerAdvertise == "":
			wrong.add(fmt.Errorf("--peer-address %s is no address that other nodes can call: set --peer-advertise to the HOST:PORT at which they reach this one", s.PeerAddress))
		default:
			wrong.add(fmt.Errorf("--peer-advertise %s is no address that other nodes can call: it is the HOST:PORT at which they reach this one", s.PeerAdvertise))
		}
	}
	for _, u := range []struct{ name, url, like string }{
		{"public-url", s.PublicURL, "https://HOST:PORT"}, {"traces-to", s.TracesTo, "http://HOST:4318"},
	} {
		if u.url != "" && !isService(u.url) {
			wrong.add(fmt.Errorf("--%s is a URL like %s", u.name, u.like))
		}
	}
	if len(s.CORS) > httpapi.OriginsMax {
		wrong.add(fmt.Errorf("--cors names at most %d origins, not %d", httpapi.OriginsMax, len(s.CORS)))
	}
	for _, origin := range s.CORS[:min(len(s.CORS), httpapi.OriginsMax)] {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || u.Scheme+"://"+u.Host != origin {
			wrong.add(fmt.Errorf("--cors names origins like https://example.org, without a slash at the end, not %q", origin))
		}
	}
	return wrong.err()
}

// isService reports whether text is the URL of a service over HTTP.
func isService(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != ""
}

// checkCluster checks the settings of the cluster that the node founds or keeps.
func (s Settings) checkCluster() error {
	var wrong Problems
	for _, c := range []struct {
		bad     bool
		problem string
	}{
		{s.Expect < 0, "--bootstrap-expect can't be negative"},
		{s.Shards < 1 || s.Shards > node.ShardsMax, fmt.Sprintf("--shards must be 1 to %d", node.ShardsMax)},
		{s.Replicas < 1 || s.Replicas > node.ReplicasMax, fmt.Sprintf("--replicas must be 1 to %d", node.ReplicasMax)},
		{s.BackupEvery <= 0, "--backup-every must be more than 0; without backup-to there are no backups"},
		{s.BackupKeep < 1, "--backup-keep must be at least 1"},
	} {
		if c.bad {
			wrong.add(errors.New(c.problem))
		}
	}
	if err := s.Node().Timing.Check(); err != nil {
		wrong.add(fmt.Errorf("--raft-heartbeat, --raft-election, --raft-lease and --raft-stall: %w", err))
	}
	return wrong.err()
}
