package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/authority"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/cluster"
	"facet/cmd/facet/dev"
	"facet/node/datadir"
)

// target contains the flags that name a cluster.
type target struct {
	dir          string
	profile      string
	addresses    []string
	certificates string

	set *pflag.FlagSet
}

// profileVariable is the environment variable that names a profile for all commands
// of a shell.
const profileVariable = "FACET_PROFILE"

func (t *target) flags(f *pflag.FlagSet) {
	t.set = f
	f.StringVar(&t.profile, "profile", "", "file that says how to reach a cluster (default: "+profileVariable+", else a cluster of facet dev in ./dev, else facet/profile.yaml in your configuration folder)")
	f.StringVar(&t.dir, "dir", devDir, "folder of a cluster of facet dev")
	f.StringSliceVar(&t.addresses, "admin", nil, "admin addresses of a cluster's nodes, host:port, instead of a profile")
	f.StringVar(&t.certificates, "certificates", "", "folder with ca.pem, admin.pem and admin.key (or the read-only status.pem and status.key), with --admin")
}

// find returns the first of these that exists: --admin and --certificates,
// --profile, --dir, the environment's profile, a cluster of facet dev here, the
// user's own profile.
func (t *target) find() (admin.Target, error) {
	given := len(t.addresses) > 0
	named := t.profile != ""
	dir := t.set.Changed("dir")
	switch {
	case given != (t.certificates != ""):
		return admin.Target{}, cli.Misuse(errors.New("--admin and --certificates belong together"))
	case given && named || given && dir || named && dir:
		return admin.Target{}, cli.Misuse(errors.New("--admin, --profile and --dir each name a cluster: give one of them"))
	case given:
		return admin.Target{Addresses: t.addresses, Certificates: t.certificates}, nil
	case named:
		return profileTarget(t.profile)
	case dir:
		return dev.Admin(t.dir)
	}
	if name := os.Getenv(profileVariable); name != "" {
		return profileTarget(name)
	}
	where, err := dev.Admin(t.dir)
	if !errors.Is(err, dev.ErrNoCluster) {
		return where, err
	}
	if own, err := os.UserConfigDir(); err == nil {
		name := filepath.Join(own, "facet", "profile.yaml")
		if _, err := os.Stat(name); err == nil {
			return profileTarget(name)
		}
	}
	return where, fmt.Errorf("no cluster is named and there is none in %s: name a profile with --profile or %s", t.dir, profileVariable)
}

func profileTarget(name string) (admin.Target, error) {
	p, err := admin.ReadProfile(name)
	return p.Target(), err
}

func newCerts() *cobra.Command {
	return cli.Group(&cobra.Command{
		Use:   "certs",
		Short: "certificates and keys by hand, for machines that can't reach the authority (else: facet cluster)",
	}, newCertsInit(), newCertsIssue())
}

func newCertsInit() *cobra.Command {
	var a access
	var name string
	cmd := &cobra.Command{
		Use:   "init",
		Short: "make the authority, the cluster's keys and the administrator's certificate",
		Long: "Make the authority, the cluster's keys and the administrator's certificate in DIR. Existing files\n" +
			"stay; a certificate with less than a third of its life left is renewed.",
		Args: cli.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if name == "" {
				return cli.Misuse(errors.New("--cluster can't be empty"))
			}
			f, err := a.authority(cmd).OpenWithKeys(cmd.Context(), name)
			if err != nil {
				return err
			}
			return sayWritten(cmd.OutOrStdout(), f.Made())
		},
	}
	a.flags(cmd.Flags(), "dir", "./certificates", "folder of the authority")
	cmd.Flags().StringVar(&name, "cluster", cluster.ClusterName, "name of the cluster in its certificates")
	return cmd
}

// sayWritten prints the names of files that were created or renewed.
func sayWritten(w io.Writer, files []string) error {
	if len(files) == 0 {
		_, err := fmt.Fprintln(w, "nothing to do: all files exist, and no certificate has to be renewed")
		return err
	}
	for _, name := range files {
		if _, err := fmt.Fprintln(w, "wrote", name); err != nil {
			return err
		}
	}
	return nil
}

func newCertsIssue() *cobra.Command {
	var a access
	var data string
	var hosts []string
	cmd := &cobra.Command{
		Use:   "issue NAME",
		Short: "make or renew the certificates of a node, in DIR/NAME",
		Long: "Make or renew the certificates of a node, in DIR/NAME. The node's id is that of its data directory,\n" +
			"which is made when missing. Copy DIR/NAME, cluster.key and gossip.key to the node; never ca.key.",
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if data == "" || len(hosts) == 0 {
				return cli.Misuse(errors.New("--data and --host are needed"))
			}
			who, err := datadir.Identify(data)
			if err != nil {
				return err
			}
			f, err := a.authority(cmd).Open(cmd.Context())
			if err != nil {
				return err
			}
			written, err := f.Ensure(authority.NodeCertificates{Name: args[0], ID: who, Hosts: hosts})
			if err != nil {
				return err
			}
			return sayWritten(cmd.OutOrStdout(), append(f.Made(), written...))
		},
	}
	a.flags(cmd.Flags(), "dir", "./certificates", "folder of the authority")
	cmd.Flags().StringVar(&data, "data", "", "the node's data directory")
	cmd.Flags().StringSliceVar(&hosts, "host", nil, "names and IP addresses under which clients and operators call the node")
	return cmd
}
