package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"facet.internal/client"
	"facet/cmd/facet/admin"
	"facet/cmd/facet/auditing"
	"facet/cmd/facet/cli"
	"facet/internal/tiles"
	"facet/node/wire"
	"facet/router"
)

const (
	// exportHolder holds the access keys of facet audit export-all, which last exportKeyLife at most.
	exportHolder  = "facet audit export-all"
	exportKeyLife = 24 * time.Hour
	revokeTimeout = 10 * time.Second
	// clusterFolder is the folder of the cluster's own log, beside those of the tenants.
	clusterFolder = "cluster"
)

// newAuditExportAll returns the command that exports the logs of all tenants.
func newAuditExportAll() *cobra.Command {
	var to, region string
	cmd := &cobra.Command{
		Use: "export-all --to FOLDER|URL", Short: "export the logs of the cluster and of all tenants, with an operator's profile",
		Long: "Export the cluster's own log into the folder \"cluster\", and the audit log of each tenant that has one, as \"facet\n" +
			"audit export\" does, into a folder with the tenant's id.\n" +
			"For each tenant it makes an access key of the role auditor, and revokes it at the end; no key outlives a day.\n" +
			"A tenant whose export fails does not stop the others. The exit status is 1 then.",
		Example: "  facet audit export-all --to audits\n  facet audit export-all --to s3://audits/facet?region=eu-west-1",
		Args:    cli.Args(cobra.NoArgs), PreRunE: needFlags("to"),
	}
	cmd.Flags().StringVar(&to, "to", "", "folder of the tenants' folders, or the URL of one in an object store")
	cmd.Flags().StringVar(&region, "region", "", "the region of signatures, if the nodes have another one than by default")
	return onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, _ []string) error {
		ctx := cmd.Context()
		urls, err := baseURLs(ctx, c)
		if err != nil {
			return err
		}
		tenants, err := c.Tenants(ctx)
		if err != nil {
			return fmt.Errorf("list the tenants: %w", err)
		}
		var failed []error
		where, err := within(to, clusterFolder)
		if err == nil {
			err = exportLog(cmd, clusterLog{c}, "the cluster", where)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("the cluster's log: %w", err))
		}
		for _, t := range tenants {
			if t.State == wire.TenantDeleting {
				continue
			}
			where, err := within(to, t.Tenant.String())
			if err == nil {
				err = exportTenant(cmd, c, t, where, client.Config{BaseURLs: urls, CAFile: authorityOf(c), Region: region})
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("tenant %s: %w", t.Name, err))
			}
		}
		return errors.Join(failed...)
	})
}

// within returns the folder with a name in a folder or at a URL.
func within(place, name string) (string, error) {
	if !auditing.IsURL(place) {
		return filepath.Join(place, name), nil
	}
	u, err := url.Parse(place)
	if err != nil {
		return "", errors.New("the object store's address is no URL")
	}
	return u.JoinPath(name).String(), nil
}

// exportTenant exports the log of a tenant, if it has one.
func exportTenant(cmd *cobra.Command, c *admin.Client, t wire.Tenant, to string, cfg client.Config) (err error) {
	ctx := cmd.Context()
	pair, err := c.NewKey(ctx, wire.NewKey{
		Tenant: t.Name, Role: router.RoleAuditor.String(), KeyTerms: wire.KeyTerms{Holder: exportHolder, Ends: time.Now().Add(exportKeyLife)},
	})
	if err != nil {
		return fmt.Errorf("make an auditor's access key: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTimeout) // Ctrl-C leaves no key, either
		defer cancel()
		if e := c.RevokeKey(ctx, t.Name, pair.AccessKey); e != nil {
			err = errors.Join(err, fmt.Errorf("revoke the access key %s: %w", pair.AccessKey, e))
		}
	}()
	cfg.AccessKey, cfg.SecretKey = pair.AccessKey, pair.SecretKey
	auditor, err := client.New(cfg)
	if err != nil {
		return err
	}
	return exportLog(cmd, auditing.Cluster{Client: auditor}, "tenant "+t.Name, to)
}

// exportLog exports a log, if there is one.
func exportLog(cmd *cobra.Command, src auditing.Source, whose, to string) error {
	ctx := cmd.Context()
	if _, err := src.Read(ctx, tiles.CheckpointPath, tiles.CheckpointBytesMax); errors.Is(err, fs.ErrNotExist) {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s has no audit log\n", whose)
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: ", whose)
	return export(cmd, src, to, "")
}
