package config

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"facet/node"
	"facet/node/sigv4"
	"facet/node/tracing"
)

const (
	// FileFlag is the flag that names the YAML file. FACET_CONFIG is its variable.
	FileFlag = "config"

	// VariablePrefix is the prefix of environment variables that are settings.
	VariablePrefix = "FACET_"
	fileBytesMax   = 1 << 20
	noDelimiter    = "\x00" // settings are flat: no name is split

	// searchBound is a setting that is gone. Its usual value, certified, asked for what all searches are
	// now, so it only raises a doubt.
	searchBound     = "search-bound"
	searchBoundGone = "--" + searchBound + " is gone, because every search is exact: remove it from the configuration file, the variables or the flags"
)

// Flags adds a flag for each setting to f.
func Flags(f *pflag.FlagSet) {
	assets := AssetsDefault()
	host, _ := os.Hostname()
	f.String(FileFlag, "", "YAML file with settings of the same names as the flags")

	f.String("zone", "", "failure domain of this node: copies of a shard lie in as many as possible")
	f.String("name", host, "name shown to operators")
	f.String("dir", "", "data directory; made when missing")
	f.String("peer-address", PeerAddressDefault, "address for other nodes, TCP and UDP")
	f.String("peer-advertise", "", "how other nodes reach that address (default: the same)")
	f.String("public-address", PublicAddressDefault, "address for clients, HTTPS")
	f.String("public-url", "", "how clients reach it, no slash at the end (default: https://ADDRESS)")
	f.String("admin-address", AdminAddressDefault, "address for operators: keep it on loopback")

	f.StringSlice("seeds", nil, "peer addresses of nodes to contact at the start")
	f.Int("bootstrap-expect", 0, "number of nodes that found the cluster together; ignored once it is founded")
	f.Int("shards", ShardsDefault, "number of shards of a cluster that is founded now")
	f.Int("replicas", ReplicasDefault, "copies of each shard of a cluster that is founded now")
	f.Duration("rebuild-after", node.AwayDefault, "how long a node may be absent before its copies are rebuilt on other nodes")

	f.String("certificates", "", "folder with ca.pem, node.pem, node.key, server.pem and server.key")
	f.String("cluster-key", "", "file with the key that wraps all data keys, outside the data directory, or "+credentialPrefix+"NAME: a credential of systemd")
	f.String("gossip-key", "", "file with the key that encrypts gossip; the same")
	f.StringSlice("cluster-key-command", nil, "program and arguments that print the cluster's key, instead of the file")
	f.StringSlice("gossip-key-command", nil, "program and arguments that print the gossip key, instead of the file")

	f.String("models", assets.Models, "folder of a model pack, or of packs: a new cluster gets the pack sface, a node takes that of its cluster")
	f.String("onnxruntime", assets.ONNXRuntime, "ONNX Runtime's shared library")
	f.String("onnxruntime-sha256", "", "SHA-256 of ONNX Runtime's library, if it is another one than \"make setup\" installs")
	f.Int("workers", 0, "images processed at once (default: one for each core)")

	f.String("bucket", "", "object store of bulk registrations: file:///DIR, s3://…, gs://… or azblob://…; each tenant has a folder with its id")
	f.Int("job-slots", 0, "files of bulk registrations processed at once (default: half of the workers)")

	f.Int64("disk-reserve", 0, "MiB of the data directory's disk below which the node refuses registrations (default: 5 % of it, at least 1 GiB)")
	f.Int64("memory", 0, "MiB of memory for events on this node; beyond it the node refuses registrations (default: three quarters of the machine's)")

	f.String("backup-to", "", "URL of a folder for regular backups of the cluster: file:///DIR (shared by all nodes), s3://, gs:// or azblob://")
	f.Duration("backup-every", 24*time.Hour, "time between these backups")
	f.Int("backup-keep", 7, "number of these backups to keep")

	f.String(searchBound, "", "gone")
	_ = f.MarkHidden(searchBound) // fails without such a flag only

	f.String("health", string(HealthSigned), "signed, or open: health is answered without a signature")
	f.String("console", string(ConsoleOn), "on, or off: the node serves no web console (/console) and no pages of the interface (/docs)")
	f.String("signature-forms", string(FormsTolerant), "tolerant, or strict: only the specification's canonical form of a request is accepted")
	f.StringSlice("must-sign", nil, "headers that have to be signed when they are sent: x-api-key, for example")
	f.Int("body-limit", bodyLimitDefault, "MiB of the largest body")

	f.String("region", sigv4.RegionDefault, "region of request signatures")
	f.StringSlice("cors", nil, "origins whose pages may call the interface")

	f.Float64("rate-tenant", 0, "requests per second that this node accepts from each tenant without a quota of its own; 0 means the default quota, 2,000")
	f.Int("rate-tenant-burst", 0, "number of these requests at once (default: those of one second)")
	f.Float64("rate-application", 0, "requests per second that this node accepts with the API keys of each application; 0 means no limit")
	f.Int("rate-application-burst", 0, "number of these requests at once (default: those of one second)")

	f.Duration("raft-heartbeat", 0, "a follower starts an election after this time without a message of the leader (default 1.5s)")
	f.Duration("raft-election", 0, "how long an election may take (default 1.5s)")
	f.Duration("raft-lease", 0, "a leader steps down after this time without answers of a quorum (default 1.5s)")
	f.Duration("raft-stall", 0, "a leader stops its heartbeats when its disk has not answered for this time (default 1.5s)")

	f.String("traces-to", "", "URL of a collector of OpenTelemetry traces: http://HOST:4318 or https://HOST:4318; without it no request is traced")
	f.Float64("traces-ratio", tracing.RatioDefault, "share of requests that are traced, 0 to 1")

	f.String("log-level", "info", "debug, info, warn or error")
	f.String("log-format", string(LogAuto), "auto, text or json: auto is text on a terminal, else JSON")
}

// Load returns the settings from the flags of f, from environ (name=value), and
// from the file that they name. Flags has added the flags to f, and f was parsed.
// The error is Problems with all that is wrong, unless a source can't be read at all.
func Load(f *pflag.FlagSet, environ []string) (Settings, error) {
	k := koanf.New(noDelimiter)
	var wrong Problems
	if name := fileName(f, environ); name != "" {
		err := loadFile(k, name, f)
		if _, names := errors.AsType[Problems](err); err != nil && !names {
			return Settings{}, err
		}
		wrong.add(err)
	}
	variables := env.Provider(noDelimiter, env.Opt{
		Prefix:        VariablePrefix,
		EnvironFunc:   func() []string { return environ },
		TransformFunc: func(k, v string) (string, any) { return setting(f, k), v },
	})
	if err := k.Load(variables, nil); err != nil {
		return Settings{}, fmt.Errorf("read the environment: %w", err)
	}
	if err := k.Load(posflag.Provider(f, noDelimiter, k), nil); err != nil {
		return Settings{}, fmt.Errorf("read the flags: %w", err)
	}
	bound := k.String(searchBound)
	if bound != "" && bound != "certified" {
		wrong.add(errors.New(searchBoundGone))
	}
	var s Settings
	if err := k.UnmarshalWithConf("", &s, koanf.UnmarshalConf{DecoderConfig: decoder()}); err != nil {
		unread := settingError(err)
		wrong.add(unread)
		wrong.add(unread.others(s.check()))
		return Settings{}, wrong
	}
	s.findCredentials(environ)
	if s.Doubts = doubts(f, environ); bound != "" {
		s.Doubts = append(s.Doubts, searchBoundGone)
	}
	wrong.add(s.check())
	return s, wrong.err()
}

// LoadFile returns the settings from the file name and from environ.
func LoadFile(name string, environ []string) (Settings, error) {
	f := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	Flags(f)
	if err := f.Set(FileFlag, name); err != nil {
		return Settings{}, err
	}
	return Load(f, environ)
}

// decoder is strict where a wrong type would be a surprise: a list for a name, say.
// It turns texts into numbers, because the environment has only texts.
func decoder() *mapstructure.DecoderConfig {
	return &mapstructure.DecoderConfig{
		WeaklyTypedInput: true,
		DecodeHook: mapstructure.ComposeDecodeHookFunc(
			mapstructure.StringToTimeDurationHookFunc(),
			listHook,
			levelHook,
		),
	}
}

// settingError turns the decoder's lines into Problems.
func settingError(err error) Problems {
	text := strings.TrimSpace(err.Error())
	if _, list, ok := strings.Cut(text, "\n\n"); ok {
		text = list
	}
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	var wrong Problems
	for _, l := range lines {
		wrong.add(errors.New("bad setting: " + strings.TrimPrefix(strings.TrimSpace(l), "* ")))
	}
	return wrong
}

// setting returns the flag's name for the name of a variable, or "" when there is
// no such flag: other programs may have FACET_ variables, too.
func setting(f *pflag.FlagSet, variable string) string {
	name := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(variable, VariablePrefix)), "_", "-")
	if f.Lookup(name) == nil {
		return ""
	}
	return name
}

func fileName(f *pflag.FlagSet, environ []string) string {
	if flag := f.Lookup(FileFlag); flag.Changed {
		return flag.Value.String()
	}
	for _, e := range environ {
		if v, ok := strings.CutPrefix(e, VariablePrefix+"CONFIG="); ok {
			return v
		}
	}
	return ""
}

// loadFile reads the file name into k. Every name in the file must be the name of a
// flag.
func loadFile(k *koanf.Koanf, name string, f *pflag.FlagSet) error {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no configuration file %s", name)
	}
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	if info.Size() > fileBytesMax {
		return fmt.Errorf("configuration file %s has more than %d bytes", filepath.Base(name), fileBytesMax)
	}
	if err := k.Load(file.Provider(name), yaml.Parser()); err != nil {
		return fmt.Errorf("read configuration file %s: %w", filepath.Base(name), err)
	}
	var wrong Problems
	for _, key := range slices.Sorted(slices.Values(k.Keys())) {
		if key == FileFlag || f.Lookup(key) == nil {
			wrong.add(unknown(f, "configuration file "+filepath.Base(name), key))
		}
	}
	return wrong.err()
}

// listHook splits a text at its commas.
func listHook(_, to reflect.Type, data any) (any, error) {
	text, ok := data.(string)
	if !ok || to != reflect.TypeFor[[]string]() {
		return data, nil
	}
	var list []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list, nil
}

// levelHook parses a log level.
func levelHook(_, to reflect.Type, data any) (any, error) {
	text, ok := data.(string)
	if !ok || to != reflect.TypeFor[slog.Level]() {
		return data, nil
	}
	var l slog.Level
	if err := l.UnmarshalText([]byte(text)); err != nil {
		return nil, fmt.Errorf("%q is not debug, info, warn or error", text)
	}
	return l, nil
}

// Write writes a configuration file with values, by rename and readable by its
// owner only.
func Write(name string, values map[string]any) error {
	b, err := yaml.Parser().Marshal(values)
	if err != nil {
		return fmt.Errorf("write configuration file %s: %w", filepath.Base(name), err)
	}
	next := name + ".new"
	if err := os.WriteFile(next, b, 0o600); err != nil {
		return fmt.Errorf("write configuration file: %w", err)
	}
	return os.Rename(next, name)
}
