package tenant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"facet.internal/client"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/table"
	"facet/internal/settings"
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
	f.Float64Var(&g.FaceMinimumQualityScore, "min-quality", QualityDefault, settings.Named[settings.Application]("faceMinimumQualityScore").Help)
	given := settingFlags[settings.Gallery](cmd, false, "name", "size")
	return onTenant(cmd, func(ctx context.Context, s *session, args []string) error {
		g.Name = args[0]
		given.set(&g)
		made, err := s.CreateGallery(ctx, g)
		if errors.Is(err, client.ErrDuplicate) { // the service's message has the API key
			return fmt.Errorf("there is a gallery %q already: facet gallery show %q", g.Name, g.Name)
		}
		if err != nil {
			return err
		}
		return s.print(made, func(w io.Writer) error {
			return writePairs(w, slices.Concat(
				[]string{"gallery", made.Name, "id", made.ID, "size", strconv.Itoa(made.Size)}, galleryPairs(made),
				[]string{"API key", made.APIKey, "next", fmt.Sprintf("facet enrol PHOTO --gallery %q%s", made.Name, s.flags())},
			)...)
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
			err := writePairs(w, slices.Concat(
				[]string{"gallery", g.Name, "id", g.ID, "faces", fmt.Sprintf("%d of %d", g.Count, g.Size)}, galleryPairs(g), []string{"ETag", g.ETag},
			)...)
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
		Example: "  facet gallery update visitors --retention-days 90\n  facet gallery update visitors --retention-days 0   # keep them always\n" +
			"  facet gallery update staff --photo-link 'https://hr.example/photos/{externalId}.jpg'",
	}
	given := settingFlags[settings.Gallery](cmd, true, "size")
	return onTenant(cmd, func(ctx context.Context, s *session, args []string) error {
		entry, err := findGallery(ctx, s.Client, args[0])
		if err != nil {
			return err
		}
		c := client.GalleryChange{}
		given.set(&c)
		g, err := s.UpdateGallery(ctx, entry.ID, c)
		if err != nil {
			return err
		}
		g.Count = entry.Count // the answer has none
		return s.print(g, func(w io.Writer) error {
			return writePairs(w, append([]string{"gallery", g.Name, "id", g.ID}, galleryPairs(g)...)...)
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
