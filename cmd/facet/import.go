package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"facet.internal/client"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/dev"
	"facet/cmd/facet/importing"
)

// errPhotosFailed makes the exit code report that some photos are not registered.
var errPhotosFailed = errors.New("some photos could not be registered")

func newImport() *cobra.Command {
	var dir, connection, key string
	var cfg importing.Config
	cmd := &cobra.Command{
		Use:   "import FOLDER…",
		Short: "register folders of photos",
		Long: "Register every photo (.jpg, .jpeg, .png) of folders and of those below them as a subject of its own.\n\n" +
			"The photos are copied to the tenant's place in the object store, registered by jobs, and the copies\n" +
			"are removed. An import that is interrupted leaves the jobs that it began to the cluster.\n" +
			"A second import of a photo is another request: it registers another subject, unless enrolmentGuard is on.\n\n" +
			"--connection names a file like the dev.json of facet dev (base_urls, ca_file, access_key,\n" +
			"secret_key), for other clusters; --bucket is then the tenant's place, such as\n" +
			"\"s3://photos?prefix=TENANT-ID/&region=eu-central-1\".",
		Args: cli.Args(cobra.MinimumNArgs(1)),
	}
	f := cmd.Flags()
	f.StringVar(&dir, "dir", devDir, "folder of a cluster of facet dev")
	f.StringVar(&connection, "connection", "", "file that says how to reach another cluster")
	f.StringVar(&key, "gallery-key", "", "the gallery's API key (default: FACET_GALLERY_KEY)")
	f.StringVar(&cfg.Bucket, "bucket", "", "URL of the tenant's place in the object store (default: that of facet dev)")
	f.StringSliceVar(&cfg.Tags, "tag", nil, "tag for all photos; may be repeated")
	f.BoolVar(&cfg.Keep, "keep", false, "leave the copies in the object store")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if key == "" {
			key = os.Getenv("FACET_GALLERY_KEY")
		}
		if key == "" {
			return cli.Misuse(errors.New("--gallery-key is needed: an API key of the gallery"))
		}
		cfg.Folders, cfg.Out = args, os.Stdout
		if connection == "" {
			info, err := dev.ReadInfo(dir)
			if err != nil {
				return err
			}
			connection = filepath.Join(dir, "dev.json")
			if cfg.Bucket == "" && info.BucketDir != "" {
				cfg.Bucket = "file://" + (&url.URL{Path: info.BucketDir}).EscapedPath() + "?metadata=skip&no_tmp_dir=true"
			}
		}
		if cfg.Bucket == "" {
			return cli.Misuse(errors.New("--bucket is needed: the tenant's place in the object store"))
		}
		c, err := client.FromDev(connection)
		if err != nil {
			return err
		}
		defer c.Close()
		cfg.Client = c.WithAPIKey(key)
		sum, err := importing.Run(cmd.Context(), cfg)
		if errors.Is(err, client.ErrForbidden) {
			return fmt.Errorf("import: %w: is the gallery key one of this tenant's galleries?", err)
		}
		if err != nil {
			return fmt.Errorf("import: %w", err)
		}
		if err := sum.Print(cmd.OutOrStdout()); err != nil {
			return err
		}
		if sum.Failed > 0 {
			return errPhotosFailed
		}
		return nil
	}
	return cmd
}
