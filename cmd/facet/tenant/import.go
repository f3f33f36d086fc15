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
not sent again. It remembers them in a file beside the report, LIST.report.csv.state; without that file,
photos without an external id are registered again.

With --check nothing is brought in. The command says of each row what an import would do, which rows show
the same person, and which show somebody who is enrolled. The exit status is 0 only if every row would go
in and none is a double.`

// importFlags are the flags of facet import.
type importFlags struct {
	importing.Config
	options list.Options
	known   string
	check   bool
}

func newImport() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use: "import LIST | FOLDER…", Short: "bring in a list or folders of photos", Long: importLong, Args: cli.Args(cobra.MinimumNArgs(1)),
		Example: "  facet import staff.csv --gallery staff\n  facet import photos/ --per-person --known add\n" +
			"  facet import --check staff.csv --gallery staff",
	}
	set := cmd.Flags()
	set.BoolVar(&f.options.PerPerson, "per-person", false, "each folder in a folder is a person; its name is the external id")
	set.BoolVar(&f.check, "check", false, "bring nothing in: say what an import would do, and which rows show one person")
	set.BoolVar(&f.options.Outside, "outside", false, "a list may name files outside its folder, by .., links and absolute paths")
	set.StringVar(&f.known, "known", string(importing.Skip), "a person whom the gallery knows by the external id: skip, replace or add (another event)")
	set.StringSliceVar(&f.Tags, "tag", nil, "tag for all photos; may be repeated")
	set.StringVar(&f.Report, "report", "", "file for the report (default: LIST.report.csv, or LIST.check.csv, beside the list or folder)")
	set.BoolVar(&f.Grow, "grow", false, "raise the gallery's size first if it has too few places (an admin's access key)")
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
		if f.check && f.Grow {
			return cli.Misuse(errors.New("--check changes nothing: leave --grow out"))
		}
		if f.check && f.Bucket != "" {
			return cli.Misuse(errors.New("--check sends the photos itself: leave --bucket out"))
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
		if f.Report, err = f.reportName(args[0]); err != nil {
			return err
		}
	}
	f.Where = s.flags()
	f.Client, f.Words, f.Out, f.Terminal = s.cfg, words, s.cmd.ErrOrStderr(), process.IsTerminal(os.Stderr)
	if f.check {
		return f.runCheck(ctx, s)
	}
	sum, err := importing.Run(ctx, f.Config)
	f.printIgnored()
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

// runCheck says what an import would do.
func (f *importFlags) runCheck(ctx context.Context, s *session) error {
	sum, err := importing.Check(ctx, f.Config)
	f.printIgnored()
	if err == nil {
		err = s.print(sum, sum.Print)
	}
	switch {
	case errors.Is(err, importing.ErrInterrupted):
		return errors.New("import: interrupted: nothing was brought in; the same command checks all rows again")
	case err != nil:
		return fmt.Errorf("import: %w", words(err))
	case sum.PlacesMissing > 0:
		return fmt.Errorf("import: places missing: %d; of %d rows %d would fail and %d are doubles: the report says which", sum.PlacesMissing, sum.Rows, sum.Failed, sum.Doubles)
	case sum.Failed+sum.Doubles > 0:
		return fmt.Errorf("import: of %d rows %d would fail and %d are doubles: the report says which", sum.Rows, sum.Failed, sum.Doubles)
	}
	return nil
}

// printIgnored names the columns of a list that are not read.
func (f *importFlags) printIgnored() {
	if ignored := f.Source.Ignored(); len(ignored) > 0 {
		fmt.Fprintf(f.Out, "columns that are not read: %q\n", ignored)
	}
}

// reportName returns the name of a report beside what is imported.
func (f *importFlags) reportName(arg string) (string, error) {
	path, err := filepath.Abs(arg) // "." has a name, too
	if err != nil {
		return "", err
	}
	if filepath.Dir(path) == path {
		return "", cli.Misuse(errors.New("--report is needed: there is no place beside " + path))
	}
	suffix := ".report.csv"
	if f.check {
		suffix = ".check.csv"
	}
	return filepath.Join(filepath.Dir(filepath.Clean(arg)), filepath.Base(path)+suffix), nil
}
