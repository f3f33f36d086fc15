package tenant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"facet/cmd/facet/cli"
	"facet/cmd/facet/importing"
)

// errPhotosFailed makes the exit status report that some photos are not registered.
var errPhotosFailed = errors.New("some photos could not be registered")

func newImport() *cobra.Command {
	var cfg importing.Config
	cmd := &cobra.Command{
		Use:   "import FOLDER…",
		Short: "register folders of photos",
		Long: "Register every photo (.jpg, .jpeg, .png) of folders and of those below them as a subject of its own.\n\n" +
			"The photos are copied to the tenant's place in the object store, registered by jobs, and the copies\n" +
			"are removed. An import that is interrupted leaves the jobs that it began to the cluster.\n" +
			"A second import of a photo is another request: it registers another subject, unless the application's\n" +
			"--guard is on.\n\n" +
			"--bucket is the tenant's place in the object store, such as\n" +
			"\"s3://photos?prefix=TENANT-ID/&region=eu-central-1\". A profile may have it, as \"bucket\".",
		Example: "  facet import photos/ --gallery staff",
		Args:    cli.Args(cobra.MinimumNArgs(1)),
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Bucket, "bucket", "", "URL of the tenant's place in the object store (default: the profile's)")
	f.StringSliceVar(&cfg.Tags, "tag", nil, "tag for all photos; may be repeated")
	f.BoolVar(&cfg.Keep, "keep", false, "leave the copies in the object store")
	return onGallery(cmd, func(ctx context.Context, s *session, args []string) (err error) {
		if cfg.Bucket == "" {
			if cfg.Bucket, err = bucketOf(s.profile); err != nil {
				return err
			}
		}
		cfg.Client, cfg.Folders, cfg.Out = s.Client, args, s.out
		if s.json {
			cfg.Out = cmd.ErrOrStderr()
		}
		sum, err := importing.Run(ctx, cfg)
		if err != nil {
			return fmt.Errorf("import: %w", words(err))
		}
		if err := s.print(sum, sum.Print); err != nil {
			return err
		}
		if sum.Failed > 0 {
			return errPhotosFailed
		}
		return nil
	})
}

// bucketOf returns the URL of the tenant's place in the object store from a profile, which
// client.ReadProfile has read before.
func bucketOf(profile string) (string, error) {
	text, err := os.ReadFile(profile)
	if err != nil {
		return "", err
	}
	var p struct {
		Bucket string `json:"bucket"`
		Folder string `json:"bucket_dir"` // of facet dev
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return "", fmt.Errorf("read the profile %s: %w", profile, err)
	}
	if p.Bucket == "" && p.Folder != "" {
		p.Bucket = "file://" + (&url.URL{Path: p.Folder}).EscapedPath() + "?metadata=skip&no_tmp_dir=true"
	}
	if p.Bucket == "" {
		return "", cli.Misuse(errors.New("--bucket is needed: the tenant's place in the object store"))
	}
	return p.Bucket, nil
}
