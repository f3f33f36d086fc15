package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"

	"github.com/spf13/cobra"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/auditing"
	"facet/cmd/facet/cli"
	"facet/internal/tiles"
	"facet/node/wire"
)

// clusterFolder is the folder of the cluster's own log, beside those of the tenants.
const clusterFolder = "cluster"

// newAuditExportAll returns the command that exports the logs of all tenants.
func newAuditExportAll() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "export-all --to FOLDER|URL", Short: "export the logs of the cluster and of all tenants, with an operator's profile",
		Long: "Export the cluster's own log into the folder \"cluster\", and the audit log of each tenant that has one, as \"facet\n" +
			"audit export\" does, into a folder with the tenant's id, also of a disabled\n" +
			"tenant. The log of each tenant records that it was read, and by which operator.\n" +
			"A tenant whose export fails does not stop the others. The exit status is 1 then.",
		Example: "  facet audit export-all --to audits\n  facet audit export-all --to s3://audits/facet?region=eu-west-1",
		Args:    cli.Args(cobra.NoArgs), PreRunE: needFlags("to"),
	}
	cmd.Flags().StringVar(&to, "to", "", "folder of the tenants' folders, or the URL of one in an object store")
	return onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, _ []string) error {
		ctx := cmd.Context()
		tenants, err := c.Tenants(ctx)
		if err != nil {
			return fmt.Errorf("list the tenants: %w", err)
		}
		var failed []error
		if err := exportLog(cmd, operatorLog{operator: c}, "the cluster", to, clusterFolder); err != nil {
			failed = append(failed, fmt.Errorf("the cluster's log: %w", err))
		}
		for _, t := range tenants {
			if t.State == wire.TenantDeleting {
				continue
			}
			if err := exportLog(cmd, operatorLog{c, t.Name}, "tenant "+t.Name, to, t.Tenant.String()); err != nil {
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

// exportLog exports a log, if there is one, into the folder with a name at a place.
func exportLog(cmd *cobra.Command, src auditing.Source, whose, to, name string) error {
	ctx := cmd.Context()
	where, err := within(to, name)
	if err != nil {
		return err
	}
	if _, err := src.Read(ctx, tiles.CheckpointPath, tiles.CheckpointBytesMax); errors.Is(err, fs.ErrNotExist) {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s has no audit log\n", whose)
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: ", whose)
	return export(cmd, src, where, "")
}
