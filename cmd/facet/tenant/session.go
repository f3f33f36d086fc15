package tenant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"facet.internal/client"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/table"
)

// Commands returns the commands of a tenant.
func Commands() []*cobra.Command {
	return []*cobra.Command{newGallery(), newApplication(), newEnrol(), newSearch(), newVerify(), newSubject(), newTag(), newJob(), newDedupe(), newImport()}
}

// roleRefused is the whole message of the service for an access key without the right.
const roleRefused = "Forbidden"

// session is what one command works with.
type session struct {
	*client.Client
	cfg     client.Config
	profile string // its file
	cmd     *cobra.Command
	out     io.Writer
	json    bool
}

// run is the work of a command.
type run func(ctx context.Context, s *session, args []string) error

// onTenant completes a command that calls the tenant's cluster. It adds the flags that name the
// profile, --purpose, and -o.
func onTenant(cmd *cobra.Command, do run) *cobra.Command {
	var where Connection
	where.Flags(cmd.Flags())
	where.PurposeFlag(cmd.Flags())
	asJSON := cli.JSONFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := where.open()
		if err != nil {
			return err
		}
		defer s.Close()
		s.cmd, s.out, s.json = cmd, cmd.OutOrStdout(), *asJSON
		return words(do(cmd.Context(), s, args))
	}
	return cmd
}

// onGallery is onTenant for a command that works on one gallery. It adds the flags that name it.
// The session's client has the gallery's API key.
func onGallery(cmd *cobra.Command, do run) *cobra.Command {
	var which choice
	which.flags(cmd.Flags())
	return onTenant(cmd, func(ctx context.Context, s *session, args []string) error {
		inside, err := which.client(ctx, s)
		if err != nil {
			return err
		}
		s.Client = inside
		return do(ctx, s, args)
	})
}

// choice has the flags that name a gallery.
type choice struct{ gallery, apiKey string }

// flags adds the flags.
func (c *choice) flags(f *pflag.FlagSet) {
	f.StringVarP(&c.gallery, "gallery", "g", "", "name or id of the gallery, for an admin's access key (default: the only one)")
	APIKeyFlag(f, &c.apiKey)
}

// APIKeyFlag adds the flag for the API key of an application.
func APIKeyFlag(f *pflag.FlagSet, apiKey *string) {
	f.StringVar(apiKey, "api-key", "", "API key of an application of the gallery, for other access keys (default: "+keyVariable+")")
}

// APIKey returns the API key of the flag, or else the variable's, or else the profile's.
func APIKey(flag string, profile client.Config) string {
	return cmp.Or(flag, os.Getenv(keyVariable), profile.APIKey)
}

// client returns a client of the gallery. Without a flag that is the gallery of the variable's
// API key, or of the profile's, or the tenant's only one.
func (c *choice) client(ctx context.Context, s *session) (*client.Client, error) {
	if c.gallery != "" && c.apiKey != "" {
		return nil, cli.Misuse(errors.New("--gallery and --api-key each name a gallery: give one of them"))
	}
	key := ""
	if c.gallery == "" {
		key = APIKey(c.apiKey, s.cfg)
	}
	if key != "" {
		return s.within(key), nil
	}
	entry, err := findGallery(ctx, s.Client, c.gallery)
	if e, ok := errors.AsType[*client.Error](err); ok && e.Status == http.StatusForbidden && e.Message == roleRefused {
		return nil, &refusedError{"this access key may not list galleries: name the gallery with --api-key or " + keyVariable, err}
	}
	if err != nil {
		return nil, err
	}
	g, err := s.Gallery(ctx, entry.ID)
	if err != nil {
		return nil, err
	}
	if len(g.Applications) == 0 {
		return nil, fmt.Errorf("the gallery %q has no application, so no API key: facet application create NAME --gallery %q", g.Name, g.Name)
	}
	return s.within(g.Applications[0].APIKey), nil // the oldest
}

// within returns a client of the gallery with this API key, which the configuration then has.
func (s *session) within(apiKey string) *client.Client {
	s.cfg.APIKey = apiKey
	return s.WithAPIKey(apiKey)
}

// findGallery returns the gallery with a name or an id, or the only one without.
func findGallery(ctx context.Context, c *client.Client, named string) (client.Gallery, error) {
	list, err := c.Galleries(ctx)
	if err != nil {
		return client.Gallery{}, err
	}
	var names []string
	for _, g := range list {
		if g.ID == named || g.Name == named {
			return g, nil
		}
		names = append(names, fmt.Sprintf("%q", g.Name))
	}
	switch {
	case len(list) == 0:
		return client.Gallery{}, errors.New("there is no gallery yet: facet gallery create NAME --size FACES")
	case named == "" && len(list) == 1:
		return list[0], nil
	case named == "":
		return client.Gallery{}, fmt.Errorf("name a gallery with --gallery: %s", strings.Join(names, ", "))
	default:
		return client.Gallery{}, fmt.Errorf("there is no gallery %q; there is %s", named, strings.Join(names, ", "))
	}
}

// flags returns the flags that named the profile, for a command to type next.
func (s *session) flags() string {
	for _, name := range []string{"profile", "dir"} { // at most one is given
		if f := s.cmd.Flag(name); f.Changed {
			return fmt.Sprintf(" --%s %s", name, f.Value)
		}
	}
	return ""
}

// print prints v as JSON if -o asks for it, and else calls text.
func (s *session) print(v any, text func(w io.Writer) error) error {
	if s.json {
		return cli.PrintJSON(s.out, v)
	}
	return text(s.out)
}

// say prints v as JSON if -o asks for it, and else a line.
func (s *session) say(v any, format string, args ...any) error {
	return s.print(v, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, format+"\n", args...)
		return err
	})
}

// printList prints a list as JSON or as a table, or says what to do about an empty one.
func printList[T any](s *session, list []T, none string, titles []string, cells func(v T, limit int) []string) error {
	return s.print(list, func(w io.Writer) error {
		if len(list) == 0 {
			_, err := fmt.Fprintln(w, none)
			return err
		}
		return writeTable(w, titles, list, cells)
	})
}

// writeTable prints a table. A cell that cells shortens to limit is a name.
func writeTable[T any](w io.Writer, titles []string, list []T, cells func(v T, limit int) []string) error {
	return table.Write(w, func(limit int) []table.Row {
		rows := []table.Row{{Cells: titles}}
		for _, v := range list {
			rows = append(rows, table.Row{Cells: cells(v, limit)})
		}
		return rows
	})
}

// writePairs prints pairs of a title and a value, one a line, without those that are empty.
func writePairs(w io.Writer, pairs ...string) error {
	wide := 0
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			wide = max(wide, len(pairs[i]))
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%-*s  %s\n", wide, pairs[i], pairs[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// at returns a time for people.
func at(t time.Time) string { return t.UTC().Format(time.DateTime + "Z") }
