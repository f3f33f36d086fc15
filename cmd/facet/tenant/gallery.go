package tenant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"facet.internal/client"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/table"
)

// Defaults of new galleries and applications.
const (
	sizeDefault = 1000
	// QualityDefault is the lowest that the service takes.
	QualityDefault = 0.45
)

func newGallery() *cobra.Command {
	return cli.Group(
		&cobra.Command{Use: "gallery", Short: "galleries: the sets of faces that are searched"},
		newGalleryList(), newGalleryCreate(), newGalleryShow(), newGalleryUpdate(), newGalleryGrow(), newGalleryDelete(),
	)
}

func newGalleryList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "list galleries", Args: cli.Args(cobra.NoArgs),
		Example: "  facet gallery list\n  facet gallery list -o json",
	}
	return onTenant(cmd, func(ctx context.Context, s *session, _ []string) error {
		list, err := s.Galleries(ctx)
		if err != nil {
			return err
		}
		titles := []string{"GALLERY", "ID", "FACES", "SIZE", "KEPT", "PURPOSE OR DESCRIPTION"}
		return printList(s, list, "there is no gallery yet: facet gallery create NAME --size FACES", titles, func(g client.Gallery, limit int) []string {
			return []string{table.Shorten(g.Name, limit), g.ID, strconv.Itoa(g.Count), strconv.Itoa(g.Size), kept(g.RetentionDays), table.Shorten(cmp.Or(g.Purpose, g.Description), limit)}
		})
	})
}

func newGalleryCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create NAME", Short: "create a gallery and its first application", Args: cli.Args(cobra.ExactArgs(1)),
		Long: "Create a gallery and its first application, whose API key programs send with their requests.\n" +
			"The size is the most faces that the gallery holds. It can grow later, and never shrinks.",
		Example: "  facet gallery create staff --size 5000\n  facet enrol photo.jpg --gallery staff\n" +
			"  facet gallery create visitors --retention-days 90 --purpose 'entry of visitors' \\\n" +
			"      --legal-ground 'GDPR Art. 9(2)(a), explicit consent'",
	}
	g := client.NewGallery{}
	f := cmd.Flags()
	f.IntVar(&g.Size, "size", sizeDefault, "the most faces")
	f.StringVar(&g.Description, "description", "", "what the gallery is for")
	f.Float64Var(&g.FaceMinimumQualityScore, "min-quality", QualityDefault, "the lowest quality of a face that is enrolled, 0.45 to 1")
	f.IntVar(&g.RetentionDays, "retention-days", 0, retentionHelp)
	f.BoolVar(&g.SubjectTemplates, "subject-templates", false, averagesHelp)
	f.StringVar(&g.PhotoLink, "photo-link", "", photoLinkHelp)
	f.StringVar(&g.Purpose, "purpose", "", purposeHelp)
	f.StringVar(&g.LegalGround, "legal-ground", "", groundHelp)
	f.StringVar(&g.Recipients, "recipients", "", recipientsHelp)
	return onTenant(cmd, func(ctx context.Context, s *session, args []string) error {
		g.Name = args[0]
		made, err := s.CreateGallery(ctx, g)
		if errors.Is(err, client.ErrDuplicate) { // the service's message has the API key
			return fmt.Errorf("there is a gallery %q already: facet gallery show %q", g.Name, g.Name)
		}
		if err != nil {
			return err
		}
		return s.print(made, func(w io.Writer) error {
			return writePairs(w, "gallery", made.Name, "id", made.ID, "size", strconv.Itoa(made.Size), "kept", kept(made.RetentionDays), "subject templates", averaged(made.SubjectTemplates), "photo link", made.PhotoLink,
				"purpose", made.Purpose, "legal ground", made.LegalGround, "recipients", made.Recipients, "API key", made.APIKey,
				"next", fmt.Sprintf("facet enrol PHOTO --gallery %q%s", made.Name, s.flags()))
		})
	})
}

func newGalleryShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show NAME|ID", Short: "show a gallery and its applications, with their API keys", Args: cli.Args(cobra.ExactArgs(1)),
		Example: "  facet gallery show staff",
	}
	return onTenant(cmd, func(ctx context.Context, s *session, args []string) error {
		entry, err := findGallery(ctx, s.Client, args[0])
		if err != nil {
			return err
		}
		g, err := s.Gallery(ctx, entry.ID)
		if err != nil {
			return err
		}
		return s.print(g, func(w io.Writer) error {
			err := writePairs(w, "gallery", g.Name, "id", g.ID, "faces", fmt.Sprintf("%d of %d", g.Count, g.Size), "kept", kept(g.RetentionDays), "subject templates", averaged(g.SubjectTemplates), "photo link", g.PhotoLink,
				"purpose", g.Purpose, "legal ground", g.LegalGround, "recipients", g.Recipients, "description", g.Description, "ETag", g.ETag)
			if err != nil {
				return err
			}
			fmt.Fprintln(w)
			return writeApplications(w, g.Applications)
		})
	})
}

func newGalleryUpdate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "update NAME|ID", Short: "change a gallery; what no flag names stays", Args: cli.Args(cobra.ExactArgs(1)),
		Long: "Change a gallery; what no flag names stays. With --retention-days, photos whose last update is that long ago\n" +
			"are removed, those that exist now, too, within seconds. facet subject list --expires-before shows what would go.",
		Example: "  facet gallery update visitors --retention-days 90\n  facet gallery update visitors --retention-days 0   # for ever\n" +
			"  facet gallery update staff --photo-link 'https://hr.example/photos/{externalId}.jpg'",
	}
	f := cmd.Flags()
	name := f.String("name", "", "another name")
	description := f.String("description", "", "what the gallery is for")
	days := f.Int("retention-days", 0, retentionHelp)
	averages := f.Bool("subject-templates", false, averagesHelp)
	link := f.String("photo-link", "", photoLinkHelp+`; "": none`)
	purpose := f.String("purpose", "", purposeHelp+`; "": none`)
	ground := f.String("legal-ground", "", groundHelp+`; "": none`)
	recipients := f.String("recipients", "", recipientsHelp+`; "": none`)
	match := f.String("if-match", "", matchHelp)
	change := func() (c client.GalleryChange, some bool) {
		set := func(flag string) bool { some = some || f.Changed(flag); return f.Changed(flag) }
		pick(&c.Name, name, set("name"))
		pick(&c.Description, description, set("description"))
		pick(&c.RetentionDays, days, set("retention-days"))
		pick(&c.SubjectTemplates, averages, set("subject-templates"))
		pick(&c.PhotoLink, link, set("photo-link"))
		pick(&c.Purpose, purpose, set("purpose"))
		pick(&c.LegalGround, ground, set("legal-ground"))
		pick(&c.Recipients, recipients, set("recipients"))
		c.IfMatch = quoted(*match)
		return c, some
	}
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if _, some := change(); !some {
			return cli.Misuse(errors.New("name what changes: --name, --description, --retention-days, --subject-templates, --photo-link, --purpose, --legal-ground or --recipients"))
		}
		return nil
	}
	return onTenant(cmd, func(ctx context.Context, s *session, args []string) error {
		entry, err := findGallery(ctx, s.Client, args[0])
		if err != nil {
			return err
		}
		c, _ := change()
		g, err := s.UpdateGallery(ctx, entry.ID, c)
		if err != nil {
			return err
		}
		g.Count = entry.Count // the answer has none
		return s.print(g, func(w io.Writer) error {
			return writePairs(w, "gallery", g.Name, "id", g.ID, "kept", kept(g.RetentionDays), "subject templates", averaged(g.SubjectTemplates), "photo link", g.PhotoLink,
				"purpose", g.Purpose, "legal ground", g.LegalGround, "recipients", g.Recipients, "description", g.Description)
		})
	})
}

func newGalleryGrow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "grow NAME|ID SIZE", Short: "raise the size of a gallery, which stays in use", Args: cli.Args(cobra.ExactArgs(2)),
		Example: "  facet gallery grow staff 20000",
	}
	size := 0
	cmd.PreRunE = func(_ *cobra.Command, args []string) (err error) {
		if size, err = strconv.Atoi(args[1]); err != nil || size < 1 {
			return cli.Misuse(fmt.Errorf("the size is the most faces, a number from 1 on, not %q", args[1]))
		}
		return nil
	}
	return onTenant(cmd, func(ctx context.Context, s *session, args []string) error {
		entry, err := findGallery(ctx, s.Client, args[0])
		if err != nil {
			return err
		}
		g, err := s.UpdateGallery(ctx, entry.ID, client.GalleryChange{Size: &size})
		if err != nil {
			return err
		}
		g.Count = entry.Count // the answer has none
		return s.say(g, "the gallery %q has room for %d faces; it had room for %d", g.Name, g.Size, entry.Size)
	})
}

func newGalleryDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete NAME|ID", Short: "delete a gallery with its subjects and applications", Args: cli.Args(cobra.ExactArgs(1)),
		Long:    "Delete a gallery with its subjects and applications, for good. It asks for the gallery's name.",
		Example: "  facet gallery delete staff\n  facet gallery delete staff --yes staff   # in a script",
	}
	confirm := cli.ConfirmFlag(cmd)
	return onTenant(cmd, func(ctx context.Context, s *session, args []string) error {
		g, err := findGallery(ctx, s.Client, args[0])
		if err != nil {
			return err
		}
		if err := confirm.Ask(ctx, fmt.Sprintf("the gallery %q with %d faces", g.Name, g.Count), g.Name); err != nil {
			return err
		}
		if err := s.DeleteGallery(ctx, g.ID); err != nil {
			return err
		}
		return s.say(deleted{ID: g.ID, Name: g.Name, Deleted: true}, "the gallery %q is deleted", g.Name)
	})
}

// deleted is what a deletion prints as JSON.
type deleted struct {
	ID      string `json:"id,omitzero"`
	Event   string `json:"eventId,omitzero"`
	Name    string `json:"name,omitzero"`
	Deleted bool   `json:"deleted"`
}
