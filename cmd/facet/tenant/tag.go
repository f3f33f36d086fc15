package tenant

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"facet.internal/client"
	"facet/cmd/facet/cli"
)

func newTag() *cobra.Command {
	return cli.Group(
		&cobra.Command{
			Use: "tag", Short: "tags: words by which a search takes a part of a gallery",
			Long: "Tags: words that photos carry, by which a search takes a part of a gallery. A gallery has at most 64.",
		},
		newTagList(), newTagCreate(), newTagRename(), newTagDelete(),
	)
}

// named is what the commands of tags print as JSON.
type named struct {
	Name string `json:"name"`
}

func newTagList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "list the tags of a gallery", Args: cli.Args(cobra.NoArgs),
		Example: "  facet tag list --gallery staff",
	}
	return onGallery(cmd, func(ctx context.Context, s *session, _ []string) error {
		list, err := s.Tags(ctx)
		if err != nil {
			return err
		}
		return s.print(list, func(w io.Writer) error {
			if len(list) == 0 {
				_, err := fmt.Fprintln(w, "the gallery has no tag: facet tag create NAME")
				return err
			}
			for _, tag := range list {
				if _, err := fmt.Fprintln(w, tag); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func newTagCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create NAME", Short: "create a tag", Args: cli.Args(cobra.ExactArgs(1)),
		Example: "  facet tag create berlin\n  facet enrol anna.jpg --tag berlin\n  facet search visitor.jpg --tag berlin",
	}
	return onGallery(cmd, func(ctx context.Context, s *session, args []string) error {
		if err := s.CreateTag(ctx, args[0]); err != nil {
			return err
		}
		return s.say(named{args[0]}, "the tag %q is there", args[0])
	})
}

func newTagRename() *cobra.Command {
	cmd := &cobra.Command{
		Use: "rename NAME NEW-NAME", Short: "rename a tag; photos keep it", Args: cli.Args(cobra.ExactArgs(2)),
		Example: "  facet tag rename berlin \"Berlin, Mitte\"",
	}
	return onGallery(cmd, func(ctx context.Context, s *session, args []string) error {
		if err := s.RenameTag(ctx, args[0], args[1]); err != nil {
			return unknownTag(args[0], err)
		}
		return s.say(named{args[1]}, "the tag %q is now %q", args[0], args[1])
	})
}

func newTagDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete NAME", Short: "delete a tag; subjects stay", Args: cli.Args(cobra.ExactArgs(1)),
		Long:    "Delete a tag. Subjects and photos stay. A tag of the same name that is created later is on them again.",
		Example: "  facet tag delete berlin",
	}
	return onGallery(cmd, func(ctx context.Context, s *session, args []string) error {
		if err := s.DeleteTag(ctx, args[0]); err != nil {
			return unknownTag(args[0], err)
		}
		return s.say(deleted{Name: args[0], Deleted: true}, "the tag %q is deleted", args[0])
	})
}

// unknownTag returns err in better words if the gallery does not have the tag.
func unknownTag(name string, err error) error {
	if errors.Is(err, client.ErrNotFound) {
		return &refusedError{fmt.Sprintf("the gallery has no tag %q: facet tag list shows them", name), err}
	}
	return err
}
