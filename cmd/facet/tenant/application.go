package tenant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"facet.internal/client"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/table"
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

const facesHelp = "a photo of several faces: refuse it, or take the dominant one, if one is clearly meant"

// thresholds are the flags of an application's settings.
type thresholds struct {
	description   string
	quality       float64
	verify, guard int
	guarded       bool
	faces         string
	review        struct{ threshold, verdicts, days int }
	search        struct{ threshold, limit int }
}

func (t *thresholds) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.description, "description", "", "what the application is for")
	f.Float64Var(&t.quality, "min-quality", QualityDefault, "the lowest quality of a face that is enrolled, 0.45 to 1")
	f.IntVar(&t.verify, "verify-threshold", client.ThresholdDefault, "the lowest score of the same person in verify, 0 to 9999")
	f.BoolVar(&t.guarded, "guard", false, "refuse to enrol a person whom the gallery knows")
	f.IntVar(&t.guard, "guard-threshold", client.ThresholdDefault, "the lowest score of the same person for --guard, 0 to 9999")
	f.StringVar(&t.faces, "multiple-faces", client.FacesRefuse, facesHelp)
	f.IntVar(&t.review.threshold, "review-threshold", 0, "the lowest score that people review, 0 to 9999; such a score is no match; 0: none")
	f.IntVar(&t.review.verdicts, "review-verdicts", 1, "how many verdicts close a case, 1 or 2")
	f.IntVar(&t.review.days, "review-days", 7, "how many days a case stays open, 1 to 365")
	f.IntVar(&t.search.threshold, "search-threshold-min", 0, "the lowest threshold that a search may ask for, 0 to 9999; 0: no bound")
	f.IntVar(&t.search.limit, "search-limit-max", 0, "the most candidates that a search may ask for, 1 to 50; 0: no bound")
}

func newApplicationCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create NAME", Short: "create an application of a gallery", Args: cli.Args(cobra.ExactArgs(1)),
		Example: "  facet application create door --gallery staff --verify-threshold 7500",
	}
	var t thresholds
	t.flags(cmd)
	gallery := cmd.Flags().StringP("gallery", "g", "", "name or id of the gallery (default: the only one)")
	return onTenant(cmd, func(ctx context.Context, s *session, args []string) error {
		g, err := findGallery(ctx, s.Client, *gallery)
		if err != nil {
			return err
		}
		n := client.NewApplication{
			Name: args[0], Description: t.description, GalleryID: g.ID, FaceMinimumQualityScore: t.quality,
			VerifyThreshold: &t.verify, EnrolmentGuard: t.guarded, EnrolmentGuardThreshold: &t.guard,
			MultipleFaces: t.faces, ReviewThreshold: t.review.threshold,
			SearchThresholdMin: t.search.threshold, SearchLimitMax: t.search.limit,
		}
		pick(&n.ReviewVerdicts, &t.review.verdicts, cmd.Flags().Changed("review-verdicts"))
		pick(&n.ReviewDays, &t.review.days, cmd.Flags().Changed("review-days"))
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
	var t thresholds
	t.flags(cmd)
	f := cmd.Flags()
	name := f.String("name", "", "another name")
	match := f.String("if-match", "", matchHelp)
	change := func() (c client.ApplicationChange, some bool) {
		set := func(flag string) bool { some = some || f.Changed(flag); return f.Changed(flag) }
		pick(&c.Name, name, set("name"))
		pick(&c.Description, &t.description, set("description"))
		pick(&c.FaceMinimumQualityScore, &t.quality, set("min-quality"))
		pick(&c.VerifyThreshold, &t.verify, set("verify-threshold"))
		pick(&c.EnrolmentGuard, &t.guarded, set("guard"))
		pick(&c.EnrolmentGuardThreshold, &t.guard, set("guard-threshold"))
		pick(&c.MultipleFaces, &t.faces, set("multiple-faces"))
		pick(&c.ReviewThreshold, &t.review.threshold, set("review-threshold"))
		pick(&c.ReviewVerdicts, &t.review.verdicts, set("review-verdicts"))
		pick(&c.ReviewDays, &t.review.days, set("review-days"))
		pick(&c.SearchThresholdMin, &t.search.threshold, set("search-threshold-min"))
		pick(&c.SearchLimitMax, &t.search.limit, set("search-limit-max"))
		c.IfMatch = quoted(*match)
		return c, some
	}
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if _, some := change(); !some {
			return cli.Misuse(errors.New("name what changes: --name, --description, --min-quality, --verify-threshold, --guard, --guard-threshold, --multiple-faces, --review-threshold, --review-verdicts, --review-days, --search-threshold-min or --search-limit-max"))
		}
		return nil
	}
	return onTenant(cmd, func(ctx context.Context, s *session, args []string) error {
		who, err := findApplication(ctx, s.Client, args[0])
		if err != nil {
			return err
		}
		c, _ := change()
		a, err := s.UpdateApplication(ctx, who, c)
		if err != nil {
			return err
		}
		return s.application(a)
	})
}

const matchHelp = "the ETag that show has printed: change nothing if somebody has changed the settings since"

// quoted returns an ETag in the quotation marks that a shell has removed.
func quoted(tag string) string {
	if tag == "" {
		return ""
	}
	return `"` + strings.Trim(tag, `"`) + `"`
}

// pick sets field to value if it is given.
func pick[T any](field **T, value *T, given bool) {
	if given {
		*field = value
	}
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
