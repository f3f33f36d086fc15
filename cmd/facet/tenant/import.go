package tenant

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"facet/cmd/facet/cli"
	"facet/cmd/facet/importing"
	"facet/cmd/facet/importing/list"
	"facet/cmd/facet/process"
)

const importLong = `Bring a list of photos, folders of them, or single photos into a gallery.

A list is a CSV file or a file of JSON lines (.jsonl). The first line of a CSV file names the columns,
in any order; commas, semicolons or tabs are between them:

  external_id,file,tags,user_data,expires
  E-1017,photos/ann.jpg,staff;night shift,,2030-01-31

Only "file" is needed. A file's path starts at the list's folder. Rows with the same external id are
photos of one person: the first makes the subject, the others add events to it.

A folder is searched for photos, with those below it; each photo is a subject of its own. With
--per-person each folder in it is a person: its name is the external id.

The report says of each row what became of it. A row that fails ends nothing. The exit status is 0 only
if all rows are in. After Ctrl-C, a crash or failed rows, the same command goes on: rows that are in are
not sent again. It remembers them in a file beside the report; without that file, photos without an
external id are registered again.`

// importFlags are the flags of facet import.
type importFlags struct {
	importing.Config
	options list.Options
	known   string
}

func newImport() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use: "import LIST | FOLDER…", Short: "bring in a list or folders of photos", Long: importLong, Args: cli.Args(cobra.MinimumNArgs(1)),
		Example: "  facet import staff.csv --gallery staff\n  facet import photos/ --per-person --known add",
	}
	set := cmd.Flags()
	set.BoolVar(&f.options.PerPerson, "per-person", false, "each folder in a folder is a person; its name is the external id")
	set.BoolVar(&f.options.Outside, "outside", false, "a list may name files outside its folder, by .., links and absolute paths")
	set.StringVar(&f.known, "known", string(importing.Skip), "a person whom the gallery knows by the external id: skip, replace or add (another event)")
	set.StringSliceVar(&f.Tags, "tag", nil, "tag for all photos; may be repeated")
	set.StringVar(&f.Report, "report", "", "file for the report (default: LIST.report.csv beside the list or folder)")
	set.IntVar(&f.AtOnce, "at-once", 0, "requests under way (default: as many as make it fast)")
	set.StringVar(&f.Bucket, "bucket", "", "URL of the tenant's place in the object store: jobs register the photos, which are copied there")
	set.BoolVar(&f.Keep, "keep", false, "leave the copies in the object store")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		f.Known = importing.Known(f.known)
		if f.Known != importing.Skip && f.Known != importing.Replace && f.Known != importing.Add {
			return cli.Misuse(errors.New("--known is skip, replace or add"))
		}
		if f.AtOnce < 0 {
			return cli.Misuse(errors.New("--at-once is a number from 1 on"))
		}
		return nil
	}
	return onGallery(cmd, f.run)
}

// run carries out an import.
func (f *importFlags) run(ctx context.Context, s *session, args []string) (err error) {
	if f.Source, err = list.Open(args, f.options); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	defer func() { err = errors.Join(err, f.Source.Close()) }()
	if f.Report == "" {
		if f.Report, err = reportName(args[0]); err != nil {
			return err
		}
	}
	f.Client, f.Words, f.Out, f.Terminal = s.cfg, words, s.cmd.ErrOrStderr(), process.IsTerminal(os.Stderr)
	sum, err := importing.Run(ctx, f.Config)
	if ignored := f.Source.Ignored(); len(ignored) > 0 {
		fmt.Fprintf(f.Out, "columns that are not read: %q\n", ignored)
	}
	if sum.Report != "" {
		if err := s.print(sum, sum.Print); err != nil {
			return err
		}
	}
	switch {
	case errors.Is(err, importing.ErrInterrupted):
		return errors.New("import: interrupted: the same command goes on")
	case err != nil:
		return fmt.Errorf("import: %w", words(err))
	case sum.Failed > 0:
		return fmt.Errorf("import: %d of %d rows are not in: the report says why; the same command tries them again", sum.Failed, sum.Rows)
	}
	return nil
}

// reportName returns the name of a report beside what is imported.
func reportName(arg string) (string, error) {
	path, err := filepath.Abs(arg) // "." has a name, too
	if err != nil {
		return "", err
	}
	if filepath.Dir(path) == path {
		return "", cli.Misuse(errors.New("--report is needed: there is no place beside " + path))
	}
	return filepath.Join(filepath.Dir(filepath.Clean(arg)), filepath.Base(path)+".report.csv"), nil
}
