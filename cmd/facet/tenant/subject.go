package tenant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"facet.internal/client"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/table"
)

// subjectsDefault is how many subjects facet subject list prints if nobody says another number.
const subjectsDefault = 50

func newSubject() *cobra.Command {
	return cli.Group(
		&cobra.Command{
			Use: "subject", Short: "subjects: the persons of a gallery",
			Long: "Subjects: the persons of a gallery. facet enrol makes one, or adds a photo to one. An event is one photo\n" +
				"of a subject. The service keeps no photos: only what it needs to compare them.\n\n" +
				"Commands take a subject's id, or externalId:ID with your own id of it.",
		},
		newSubjectList(), newSubjectShow(), newSubjectUpdate(), newSubjectMerge(), newSubjectDelete(),
	)
}

func newSubjectList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "list the photos of subjects, the newest first", Args: cli.Args(cobra.NoArgs),
		Long: "List the photos (events) of subjects, the newest first. A subject with several photos has several lines.\n" +
			"facet subject show names the photos of a subject, --external-id lists those of one by your own id. With\n" +
			"--expires-before it lists, soonest first, the photos that will be removed by themselves until then.",
		Example: "  facet subject list --limit 10\n  facet subject list --all -o json\n  facet subject list --deleted\n" +
			"  facet subject list --expires-before 30d\n  facet subject list --external-id 4711",
	}
	f := cmd.Flags()
	limit := f.Int("limit", subjectsDefault, "the most lines")
	all := f.Bool("all", false, "list all")
	gone := f.Bool("deleted", false, "list those that were deleted or replaced and have not been overwritten yet")
	external := f.String("external-id", "", "list the photos of the subject with this id of your own")
	var before moment
	f.Var(&before, "expires-before", "list what expires before this time: "+momentHelp)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *limit < 1 || *all && f.Changed("limit") {
			return cli.Misuse(errors.New("give --limit with a number from 1 on, or --all"))
		}
		if *gone && (*external != "" || !before.IsZero()) || *external != "" && !before.IsZero() {
			return cli.Misuse(errors.New("--deleted, --expires-before and --external-id exclude each other"))
		}
		return nil
	}
	return onGallery(cmd, func(ctx context.Context, s *session, _ []string) error {
		list, want := newEntries(s, *gone), client.Active
		from := s.AllSubjects(ctx, client.Descending)
		switch {
		case *gone:
			want = client.Deleted
		case !before.IsZero():
			list.due(before.Time)
			from = s.expiring(ctx, before.Time, &list.total)
		case *external != "":
			list.none = "the gallery has no subject with the external id " + *external
			from = s.with(ctx, *external)
		}
		if *all {
			*limit = math.MaxInt
		}
		return list.write(from, want, *limit)
	})
}

// with iterates over the photos of the subject with an external id.
func (s *session) with(ctx context.Context, external string) iter.Seq2[client.Entry, error] {
	return func(yield func(client.Entry, error) bool) {
		list, err := s.SubjectsWith(ctx, external)
		if err != nil {
			yield(client.Entry{}, err)
			return
		}
		for _, e := range list.Subjects {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// entries prints entries of the subject list one by one, since there may be millions.
type entries struct {
	*session
	title string    // of the time
	third string    // title of the third column
	none  string    // what is said of an empty list
	until time.Time // if not zero, the list has what expires before it, total in all
	total int
	count int
	more  bool
}

func newEntries(s *session, gone bool) *entries {
	if gone {
		return &entries{session: s, title: "DELETED", third: "EVENT", none: "no subject was deleted lately"}
	}
	return &entries{session: s, title: "UPDATED", third: "EXTERNAL ID", none: "the gallery has no subject yet: facet enrol PHOTO"}
}

// due turns the list into one of what expires before a time.
func (l *entries) due(before time.Time) {
	l.title, l.until, l.none = "EXPIRES", before, "no photo expires before "+at(before)
}

// write prints those entries of a list that have the wanted status, at most limit.
func (l *entries) write(from iter.Seq2[client.Entry, error], want client.Status, limit int) error {
	for e, err := range from {
		switch {
		case err != nil:
			return err
		case e.Status != want:
			continue
		case l.count == limit:
			l.more = true
			return l.end()
		}
		if err := l.add(e); err != nil {
			return err
		}
	}
	return l.end()
}

// entryFormat has a subject, a time, and the event or the external id.
const entryFormat = "%-36s  %-20s  %s\n"

// externalShown is how much of an external id fits into a line.
const externalShown = 38

func (l *entries) add(e client.Entry) (err error) {
	l.count++
	switch {
	case l.json:
		before := ",\n  "
		if l.count == 1 {
			before = "[\n  "
		}
		text, failed := json.Marshal(e)
		if failed != nil {
			return fmt.Errorf("encode: %w", failed)
		}
		_, err = fmt.Fprintf(l.out, "%s%s", before, text)
	case l.count == 1:
		if _, err = fmt.Fprintf(l.out, entryFormat, "SUBJECT", l.title, l.third); err != nil {
			return err
		}
		fallthrough
	default:
		third := e.EventID // a deleted entry has no external id
		if e.Status == client.Active {
			third = table.Shorten(e.ExternalID, externalShown)
		}
		when := e.LastUpdated
		if !l.until.IsZero() {
			when = e.Expires
		}
		_, err = fmt.Fprintf(l.out, entryFormat, e.ID, at(when), third)
	}
	return err
}

func (l *entries) end() (err error) {
	switch {
	case l.json && l.count == 0:
		_, err = fmt.Fprintln(l.out, "[]")
	case l.json:
		_, err = fmt.Fprintln(l.out, "\n]")
	case l.count == 0:
		_, err = fmt.Fprintln(l.out, l.none)
	case !l.until.IsZero():
		_, err = fmt.Fprintf(l.out, "%d of %d photos that expire before %s\n", l.count, l.total, at(l.until))
	case l.more:
		_, err = fmt.Fprintln(l.out, "there are more: --limit NUMBER or --all")
	}
	return err
}

func newSubjectShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show SUBJECT", Short: "show a subject: your own id and data of it, and its photos (events)", Args: cli.Args(cobra.ExactArgs(1)),
		Example: "  facet subject show 5b0b9b32-8392-8002-b506-6b5b46edb7fa\n  facet subject show externalId:4711",
	}
	return onGallery(cmd, func(ctx context.Context, s *session, args []string) error {
		subject, err := s.Subject(ctx, args[0])
		if errors.Is(err, client.ErrNotFound) {
			return unknownSubject(args[0], err)
		}
		if err != nil {
			return err
		}
		return s.print(subject, func(w io.Writer) error {
			pairs := []string{"subject", subject.ID, "external id", subject.ExternalID, "user data", string(subject.UserData)}
			for _, event := range subject.Events {
				pairs = append(pairs, "event", event.ID, "expires", expiresAt(event.Expires))
			}
			return writePairs(w, pairs...)
		})
	})
}

func newSubjectUpdate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "update SUBJECT PHOTO", Short: "replace a photo of a subject", Args: cli.Args(cobra.ExactArgs(2)),
		Long: "Replace a photo of a subject: that of --event, or else the oldest. PHOTO is a file, or - for the standard\n" +
			"input. Its tags and its --expires stay, unless a flag says otherwise. facet enrol --subject adds a photo.",
		Example: "  facet subject update 5b0b9b32-8392-8002-b506-6b5b46edb7fa newer.jpg --expires 90d\n" +
			"  facet subject update 5b0b9b32-8392-8002-b506-6b5b46edb7fa newer.jpg --expires never",
	}
	tags := tagFlag(cmd, "tag of the gallery for the photo, instead of its tags")
	f := cmd.Flags()
	none := f.Bool("no-tags", false, "take all tags from the photo")
	event := f.String("event", "", "the photo to replace (default: the oldest)")
	var expires momentOrNever
	f.Var(&expires, "expires", "when the photo is removed by itself: "+momentHelp+", or never")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *none && len(*tags) > 0 {
			return cli.Misuse(errors.New("--tag and --no-tags exclude each other"))
		}
		return nil
	}
	return onGallery(cmd, func(ctx context.Context, s *session, args []string) error {
		image, err := readPhoto(cmd, args[1])
		if err != nil {
			return err
		}
		photo := client.Photo{Image: image, Tags: *tags, Expires: expires.Time, NoExpiry: expires.never}
		if len(*tags) == 0 {
			photo.Tags = nil // they stay
		}
		if *none {
			photo.Tags = []string{}
		}
		var got client.Registered
		if *event == "" {
			got, err = s.Update(ctx, args[0], photo)
		} else {
			got, err = s.UpdateEvent(ctx, args[0], *event, photo)
		}
		if errors.Is(err, client.ErrNotFound) {
			return unknownSubject(args[0], err)
		}
		if err != nil {
			return err
		}
		return s.registered("updated", got)
	})
}

// mergedOutput is what facet subject merge prints as JSON.
type mergedOutput struct {
	ID     string `json:"id"`
	Source string `json:"source"`
}

// subjectID returns the id of a subject that is named by its id or as externalId:ID.
func (s *session) subjectID(ctx context.Context, name string) (string, error) {
	external, ok := strings.CutPrefix(name, client.External(""))
	if !ok {
		return name, nil
	}
	list, err := s.SubjectsWith(ctx, external)
	if err != nil {
		return "", err
	}
	if len(list.Subjects) == 0 {
		return "", fmt.Errorf("the gallery has no subject with the external id %s", external)
	}
	return list.Subjects[0].ID, nil
}

func newSubjectMerge() *cobra.Command {
	cmd := &cobra.Command{
		Use: "merge SUBJECT OTHER", Short: "move all photos of another subject to this one", Args: cli.Args(cobra.ExactArgs(2)),
		Long: "Move all photos of OTHER to SUBJECT, and remove OTHER: the two are one person. It takes about five seconds.\n" +
			"SUBJECT keeps its external id and user data; those of OTHER go. Nobody can take a merge back.",
		Example: "  facet subject merge 5b0b9b32-8392-8002-b506-6b5b46edb7fa 7f9e2d11-0c3a-8001-9b2e-c1f2a3948576",
	}
	return onGallery(cmd, func(ctx context.Context, s *session, args []string) error {
		source, err := s.subjectID(ctx, args[1])
		var merged client.Merged
		if err == nil {
			merged, err = s.Merge(ctx, args[0], source)
		}
		if errors.Is(err, client.ErrNotFound) {
			return unknownSubject(args[0], err)
		}
		if err != nil {
			return err
		}
		return s.say(mergedOutput{merged.ID, source}, "%s has the photos of %s, which is removed", args[0], args[1])
	})
}

func newSubjectDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete SUBJECT", Short: "delete a subject, or one photo of it", Args: cli.Args(cobra.ExactArgs(1)),
		Long:    "Delete a subject with its photos, or one photo of it. The last photo takes the subject with it.",
		Example: "  facet subject delete 5b0b9b32-8392-8002-b506-6b5b46edb7fa",
	}
	event := cmd.Flags().String("event", "", "delete only this photo")
	return onGallery(cmd, func(ctx context.Context, s *session, args []string) (err error) {
		what := "the subject " + args[0]
		if *event == "" {
			err = s.Unregister(ctx, args[0])
		} else {
			what = "the event " + *event
			err = s.UnregisterEvent(ctx, args[0], *event)
		}
		if errors.Is(err, client.ErrNotFound) {
			return unknownSubject(args[0], err)
		}
		if err != nil {
			return err
		}
		return s.say(deleted{ID: args[0], Event: *event, Deleted: true}, "%s is deleted", what)
	})
}
