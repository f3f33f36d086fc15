package config

import (
	"fmt"
	"net/url"

	"github.com/go-viper/mapstructure/v2"
)

// hidden replaces a part of a setting that may be secret.
const hidden = "…"

// Shareable returns the settings by name, for people who may not know secrets: without the arguments
// of the commands that print keys, and without users and parameters of URLs. Files with keys are
// named and not read.
func (s Settings) Shareable() (map[string]any, error) {
	for _, command := range []*[]string{&s.ClusterKeyCommand, &s.GossipKeyCommand} {
		if len(*command) > 1 {
			*command = []string{(*command)[0], hidden}
		}
	}
	for _, u := range []*string{&s.Bucket, &s.BackupTo, &s.PublicURL, &s.TracesTo} {
		*u = bare(*u)
	}
	out := map[string]any{}
	d, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{Result: &out, TagName: "koanf"})
	if err == nil {
		err = d.Decode(s)
	}
	if err != nil {
		return nil, fmt.Errorf("list the settings: %w", err)
	}
	for _, name := range []string{"rebuild-after", "backup-every", "raft-heartbeat", "raft-election", "raft-lease", "raft-stall"} {
		out[name] = fmt.Sprint(out[name]) // as the file has them
	}
	out["log-level"] = s.LogLevel.String()
	return out, nil
}

// bare returns a URL without user and parameters.
func bare(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return hidden
	}
	if u.User != nil {
		u.User = url.User(hidden)
	}
	if u.RawQuery != "" {
		u.RawQuery = hidden
	}
	u.Fragment = ""
	return u.String()
}
