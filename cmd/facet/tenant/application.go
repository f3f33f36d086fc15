package tenant

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"facet.internal/client"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/table"
	"facet/internal/settings"
)

func newApplication() *cobra.Command {
	return cli.Group(
		&cobra.Command{
			Use: "application", Short: "applications: the API keys of galleries, with their thresholds",
			Long: "Applications. Each is one API key of a gallery, with the thresholds that its requests have.",
		},
		newApplicationList(), newApplicationCreate(), newApplicationShow(), newApplicationUpdate(), newApplicationDelete(),
	)
}

func writeApplications(w io.Writer, list []client.ApplicationEntry) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "there is no application: facet application create NAME --gallery GALLERY")
		return err
	}
	return writeTable(w, []string{"APPLICATION", "ID", "API KEY"}, list, func(a client.ApplicationEntry, limit int) []string {
		return []string{table.Shorten(a.Name, limit), a.ID, a.APIKey}
	})
}

func newApplicationList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "list applications, of one gallery or of all", Args: cli.Args(cobra.NoArgs),
		Example: "  facet application list --gallery staff",
	}
	gallery := cmd.Flags().StringP("gallery", "g", "", "name or id of a gallery (default: all)")
	return onTenant(cmd, func(ctx context.Context, s *session, _ []string) error {
		list, err := applications(ctx, s.Client, *gallery)
		if err != nil {
			return err
		}
		return s.print(list, func(w io.Writer) error { return writeApplications(w, list) })
	})
}

// applications returns the applications of a gallery, or of all without a name.
func applications(ctx context.Context, c *client.Client, gallery string) ([]client.ApplicationEntry, error) {
	if gallery == "" {
		return c.Applications(ctx)
	}
	entry, err := findGallery(ctx, c, gallery)
	if err != nil {
		return nil, err
	}
	g, err := c.Gallery(ctx, entry.ID)
	return g.Applications, err
}

// findApplication returns the id of the application with a name or an id.
func findApplication(ctx context.Context, c *client.Client, named string) (string, error) {
	list, err := c.Applications(ctx)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, a := range list {
		if a.ID == named {
			return a.ID, nil
		}
		if a.Name == named {
			ids = append(ids, a.ID)
		}
	}
	switch len(ids) {
	case 0:
		return "", fmt.Errorf("there is no application %q: facet application list shows them", named)
	case 1:
		return ids[0], nil
	default:
		return "", fmt.Errorf("several applications have the name %q: give an id, %s", named, strings.Join(ids, " or "))
	}
}

func newApplicationCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create NAME", Short: "create an application of a gallery", Args: cli.Args(cobra.ExactArgs(1)),
		Example: "  facet application create door --gallery staff --verify-threshold 7500",
	}
	given := settingFlags[settings.Application](cmd, false, "name")
	gallery := cmd.Flags().StringP("gallery", "g", "", "name or id of the gallery (default: the only one)")
	return onTenant(cmd, func(ctx context.Context, s *session, args []string) error {
		g, err := findGallery(ctx, s.Client, *gallery)
		if err != nil {
			return err
		}
		n := client.NewApplication{Name: args[0], GalleryID: g.ID}
		given.set(&n)
		made, err := s.CreateApplication(ctx, n)
		if err != nil {
			return err
		}
		return s.application(made)
	})
}

// application prints an application.
func (s *session) application(a client.Application) error {
	return s.print(a, func(w io.Writer) error {
		guard := "off"
		if a.EnrolmentGuard {
			guard = "refuses to enrol a person who is known with a score of " + strconv.Itoa(a.EnrolmentGuardThreshold)
		}
		return writePairs(w, "application", a.Name, "id", a.ID, "API key", a.APIKey, "description", a.Description,
			"enrols from quality", strconv.FormatFloat(a.FaceMinimumQualityScore, 'g', 6, 64), "verifies from score", strconv.Itoa(a.VerifyThreshold), "guard", guard,
			"several faces", cmp.Or(a.MultipleFaces, client.FacesRefuse), "reviews", reviewed(a), "searches", searched(a), "ETag", a.ETag)
	})
}

// reviewed returns for people which scores they review, or "".
func reviewed(a client.Application) string {
	if a.ReviewThreshold == 0 {
		return ""
	}
	return fmt.Sprintf("scores from %d; verdicts: %d, within %d days", a.ReviewThreshold, a.ReviewVerdicts, a.ReviewDays)
}

// searched returns for people what a search may ask for, or "".
func searched(a client.Application) string {
	var bounds []string
	if a.SearchThresholdMin > 0 {
		bounds = append(bounds, fmt.Sprintf("scores from %d", a.SearchThresholdMin))
	}
	if a.SearchLimitMax > 0 {
		bounds = append(bounds, fmt.Sprintf("candidates: at most %d", a.SearchLimitMax))
	}
	return strings.Join(bounds, "; ")
}

func newApplicationShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show NAME|ID", Short: "show an application with its API key and thresholds", Args: cli.Args(cobra.ExactArgs(1)),
		Example: "  facet application show door",
	}
	return onTenant(cmd, func(ctx context.Context, s *session, args []string) error {
		who, err := findApplication(ctx, s.Client, args[0])
		if err != nil {
			return err
		}
		a, err := s.Application(ctx, who)
		if err != nil {
			return err
		}
		return s.application(a)
	})
}

func newApplicationUpdate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "update NAME|ID", Short: "change an application; what no flag names stays", Args: cli.Args(cobra.ExactArgs(1)),
		Example: "  facet application update door --verify-threshold 8000 --guard=false",
	}
	given := settingFlags[settings.Application](cmd, true)
	return onTenant(cmd, func(ctx context.Context, s *session, args []string) error {
		who, err := findApplication(ctx, s.Client, args[0])
		if err != nil {
			return err
		}
		c := client.ApplicationChange{}
		given.set(&c)
		a, err := s.UpdateApplication(ctx, who, c)
		if err != nil {
			return err
		}
		return s.application(a)
	})
}

func newApplicationDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete NAME|ID", Short: "delete an application: its API key is refused; the gallery stays", Args: cli.Args(cobra.ExactArgs(1)),
		Example: "  facet application delete door",
	}
	return onTenant(cmd, func(ctx context.Context, s *session, args []string) error {
		who, err := findApplication(ctx, s.Client, args[0])
		if err != nil {
			return err
		}
		if err := s.DeleteApplication(ctx, who); err != nil {
			return err
		}
		return s.say(deleted{ID: who, Deleted: true}, "the application %s is deleted; its API key is refused", who)
	})
}
