package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/authority"
	"facet/cmd/facet/dev"
	"facet/node"
)

// target are the flags that say which cluster is meant.
type target struct {
	dir          string
	addresses    []string
	certificates string
}

func (t *target) flags(f *pflag.FlagSet) {
	f.StringVar(&t.dir, "dir", devDir, "folder of a cluster of facet dev")
	f.StringSliceVar(&t.addresses, "admin", nil, "admin addresses of a cluster's nodes, host:port, instead of --dir")
	f.StringVar(&t.certificates, "certificates", "", "folder with ca.pem, admin.pem and admin.key, with --admin")
}

func (t *target) client() (*admin.Client, error) {
	if (len(t.addresses) == 0) != (t.certificates == "") {
		return nil, &usageError{errors.New("--admin and --certificates belong together")}
	}
	where := admin.Target{Addresses: t.addresses, Certificates: t.certificates}
	if len(t.addresses) == 0 {
		var err error
		if where, err = dev.Admin(t.dir); err != nil {
			return nil, err
		}
	}
	return admin.NewClient(where)
}

// status asks the cluster how it is, and gives the client for what comes then.
func (t *target) status(ctx context.Context) (*admin.Client, node.Status, error) {
	c, err := t.client()
	if err != nil {
		return nil, node.Status{}, err
	}
	s, err := c.Status(ctx)
	return c, s, err
}

func newTenant() *cobra.Command {
	cmd := &cobra.Command{Use: "tenant", Short: "tenants and their access keys", Args: usage(cobra.NoArgs)}
	var t target
	var asJSON bool
	create := &cobra.Command{
		Use:   "create NAME",
		Short: "make a tenant and its first access key; the secret is shown once",
		Args:  usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := t.client()
			if err != nil {
				return err
			}
			keys, err := c.CreateTenant(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("create tenant: %w", err)
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), keys)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "tenant      %s (%s)\naccess key  %s\nsecret key  %s\n",
				keys.Name, keys.Tenant, keys.AccessKey, keys.SecretKey)
			return err
		},
	}
	t.flags(create.Flags())
	create.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(create)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	return cmd
}

func newStatus() *cobra.Command {
	var t target
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "nodes, groups, leaders, lag and warnings",
		Args:  usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, s, err := t.status(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), s)
			}
			return admin.Write(cmd.OutOrStdout(), s)
		},
	}
	t.flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newCerts() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "certs",
		Short: "a cluster's certificate authority, keys and certificates",
		Args:  usage(cobra.NoArgs),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCertsInit(), newCertsIssue())
	return cmd
}

func newCertsInit() *cobra.Command {
	var dir, name string
	cmd := &cobra.Command{
		Use:   "init",
		Short: "make the authority, the cluster's keys and the administrator's certificate",
		Long: "Make the authority, the cluster's keys and the administrator's certificate in DIR. What is there\n" +
			"stays; a certificate with less than a third of its life left is renewed.",
		Args: usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := authority.Open(dir, name)
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "./certificates", "folder of the authority")
	cmd.Flags().StringVar(&name, "cluster", "facet", "name of the cluster in its certificates")
	return cmd
}

func newCertsIssue() *cobra.Command {
	var dir, data string
	var hosts []string
	cmd := &cobra.Command{
		Use:   "issue NAME",
		Short: "make or renew the certificates of a node, in DIR/NAME",
		Long: "Make or renew the certificates of a node, in DIR/NAME. The node's id is that of its data directory,\n" +
			"which is made when missing. Copy DIR/NAME, cluster.key and gossip.key to the node; never ca.key.",
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if data == "" || len(hosts) == 0 {
				return &usageError{errors.New("--data and --host are needed")}
			}
			who, err := node.Identify(data)
			if err != nil {
				return err
			}
			f, err := authority.Open(dir, "facet")
			if err != nil {
				return err
			}
			return f.Ensure(authority.NodeCertificates{Name: args[0], ID: who, Hosts: hosts})
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "./certificates", "folder of the authority")
	cmd.Flags().StringVar(&data, "data", "", "the node's data directory")
	cmd.Flags().StringSliceVar(&hosts, "host", nil, "names and IP addresses under which clients and operators call the node")
	return cmd
}

func printJSON(w io.Writer, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err = fmt.Fprintln(w, string(b))
	return err
}
