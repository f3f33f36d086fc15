package config

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"facet/node/keys"
)

const (
	// CredentialsVariable is the environment variable in which systemd names the folder of
	// a service's credentials.
	CredentialsVariable = "CREDENTIALS_DIRECTORY"

	credentialPrefix = "credential:"
)

// findCredentials replaces the names of credentials by the names of their files.
func (s *Settings) findCredentials(environ []string) {
	for _, e := range environ {
		if dir, ok := strings.CutPrefix(e, CredentialsVariable+"="); ok {
			s.CredentialsDir = dir
		}
	}
	if s.CredentialsDir == "" {
		return
	}
	for _, key := range []*string{&s.ClusterKey, &s.GossipKey} {
		if name, ok := strings.CutPrefix(*key, credentialPrefix); ok && filepath.IsLocal(name) {
			*key = filepath.Join(s.CredentialsDir, name)
		}
	}
}

// checkKeys returns Problems for shared keys that have no source, or two.
func (s Settings) checkKeys() error {
	var wrong Problems
	for _, key := range []struct {
		name, file string
		command    []string
	}{{"cluster-key", s.ClusterKey, s.ClusterKeyCommand}, {"gossip-key", s.GossipKey, s.GossipKeyCommand}} {
		credential, named := strings.CutPrefix(key.file, credentialPrefix)
		switch {
		case key.file == "" && len(key.command) == 0:
			wrong.add(fmt.Errorf("--%s is needed: a file (facet certs init makes one) or %sNAME; or --%s-command", key.name, credentialPrefix, key.name))
		case key.file != "" && len(key.command) > 0:
			wrong.add(fmt.Errorf("--%s and --%s-command both say where the key is: give one of them", key.name, key.name))
		case len(key.command) > 0 && !filepath.IsAbs(key.command[0]):
			wrong.add(fmt.Errorf("--%s-command needs a program with its whole path, not %q", key.name, key.command[0]))
		case named && s.CredentialsDir == "":
			wrong.add(fmt.Errorf("--%s is the credential %q of systemd, and there is no $%s: start the node as a service with LoadCredentialEncrypted=%s, "+
				"and other commands with systemd-run --pty --property=LoadCredentialEncrypted=%s", key.name, credential, CredentialsVariable, credential, credential))
		case named:
			wrong.add(fmt.Errorf("--%s: %q is no name of a credential", key.name, credential))
		}
	}
	return wrong.err()
}

// ReadKeys returns the contents of the files of the shared keys.
func (s Settings) ReadKeys(ctx context.Context) (cluster, gossip []byte, err error) {
	cluster, err1 := keys.SourceOf(s.ClusterKey, s.CredentialsDir, s.ClusterKeyCommand).Read(ctx)
	gossip, err2 := keys.SourceOf(s.GossipKey, s.CredentialsDir, s.GossipKeyCommand).Read(ctx)
	return cluster, gossip, errors.Join(err1, err2)
}
