package tenant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"facet.internal/client"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/table"
)

// tagFlag adds --tag to cmd.
func tagFlag(cmd *cobra.Command, help string) *[]string {
	return cmd.Flags().StringSlice("tag", nil, help+"; may be repeated")
}

func newEnrol() *cobra.Command {
	cmd := &cobra.Command{
		Use: "enrol PHOTO", Short: "enrol the person on a photo", Args: cli.Args(cobra.ExactArgs(1)),
		Long: "Enrol the person on a photo: make a subject with this photo's face, or add the face to a subject that\n" +
			"exists. PHOTO is a file, or - for the standard input. It shows one person.\n" +
			"The same photo again enrols another subject, unless the application's --guard is on.",
		Example: "  facet enrol anna.jpg\n  facet enrol anna2.jpg --subject 5b0b9b32-8392-8002-b506-6b5b46edb7fa\n" +
			"  facet enrol anna.jpg --gallery staff --tag berlin --external-id 4711\n  facet enrol visitor.jpg --expires 30d\n  curl -s https://example.org/anna.jpg | facet enrol -",
	}
	tags := tagFlag(cmd, "tag of the gallery for the photo")
	subject := cmd.Flags().String("subject", "", "add the photo to this subject")
	external := cmd.Flags().String("external-id", "", "your own id of the new subject; externalId:ID then stands for its id")
	cmd.MarkFlagsMutuallyExclusive("subject", "external-id")
	var expires moment
	cmd.Flags().Var(&expires, "expires", "when the photo is removed by itself: "+momentHelp)
	return onGallery(cmd, func(ctx context.Context, s *session, args []string) error {
		image, err := readPhoto(cmd, args[0])
		if err != nil {
			return err
		}
		photo := client.Photo{Image: image, Tags: *tags, Expires: expires.Time}
		if *external != "" {
			photo.ExternalID = external
		}
		var got client.Registered
		if *subject == "" {
			got, err = s.Register(ctx, photo)
		} else {
			got, err = s.RegisterEvent(ctx, *subject, photo)
		}
		if errors.Is(err, client.ErrNotFound) {
			return unknownSubject(*subject, err)
		}
		if err != nil {
			return err
		}
		return s.registered("enrolled", got)
	})
}

// registered prints what an enrolment or an update has made.
func (s *session) registered(did string, r client.Registered) error {
	return s.print(r, func(w io.Writer) error {
		pairs := []string{
			did, "subject " + r.ID, "photo", "event " + r.EventID,
			"quality", fmt.Sprintf("%.2f of 1", float64(r.Attributes.FaceQualityScore)),
		}
		if n := len(r.IgnoredFaces); n > 0 {
			pairs = append(pairs, "other faces", fmt.Sprintf("%d, ignored", n))
		}
		return writePairs(w, pairs...)
	})
}

// unknownSubject returns the error for a subject that the gallery does not have.
func unknownSubject(subject string, err error) error {
	return &refusedError{fmt.Sprintf("the gallery has no subject %s: facet subject list shows them; %s stands for your own id", subject, client.External("ID")), err}
}

func newSearch() *cobra.Command {
	cmd := &cobra.Command{
		Use: "search PHOTO", Short: "find out whom a photo shows", Args: cli.Args(cobra.ExactArgs(1)),
		Long: "Compare the person on a photo with a whole gallery. PHOTO is a file, or - for the standard input.\n" +
			"A score goes from 0 to 9999; at 7000, 1 in 100,000 comparisons of two people wrongly says \"the same\".\n\n" +
			"With --all the list has every subject at or above the threshold; this needs an access key of role admin.\n\n" +
			"The exit status is 0 if there is a candidate, 5 if there is none, and 1 if the search failed.",
		Example: "  facet search visitor.jpg\n  facet search visitor.jpg --threshold 6000 --limit 3 -o json\n" +
			"  facet search visitor.jpg --all",
	}
	tags := tagFlag(cmd, "search only photos with this tag")
	f := cmd.Flags()
	threshold := f.Int("threshold", client.ThresholdDefault, "the lowest score of a candidate, 0 to 9999")
	limit := f.Int("limit", 10, "the most photos in the answer, 1 to 50")
	all := f.Bool("all", false, "list every subject, not only the best")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *all && (f.Changed("limit") || len(*tags) > 0) {
			return cli.Misuse(errors.New("--all goes without --limit and --tag"))
		}
		return nil
	}
	return onGallery(cmd, func(ctx context.Context, s *session, args []string) error {
		image, err := readPhoto(cmd, args[0])
		if err != nil {
			return err
		}
		if *all {
			list, err := s.matches(ctx, client.MatchQuery{Probe: image, Threshold: threshold, Length: matchesPage})
			if err != nil {
				return err
			}
			return s.found(matchesOutput{list}, list, *threshold)
		}
		got, err := s.Search(ctx, client.SearchQuery{Probe: image, Threshold: threshold, Limit: *limit, Tags: *tags})
		if err != nil {
			return err
		}
		list := make([]client.Match, len(got.Candidates))
		for i, c := range got.Candidates {
			list[i] = client.Match{
				ID: c.ID, Score: c.Score, SubjectScore: c.SubjectScore, Events: c.Events, EventCount: len(c.Events),
				ExternalID: c.ExternalID, UserData: c.UserData,
			}
		}
		return s.found(got, list, *threshold)
	})
}

const (
	// matchesMax is the most subjects that facet search --all prints, matchesPage how many the
	// service is asked for at once.
	matchesMax, matchesPage = 10_000, 200
)

// matchesOutput is what facet search --all prints as JSON.
type matchesOutput struct {
	Candidates []client.Match `json:"candidates"`
}

// matches returns all subjects at or above the threshold of q, best first.
func (s *session) matches(ctx context.Context, q client.MatchQuery) ([]client.Match, error) {
	list := []client.Match{}
	for m, err := range s.Matches(ctx, q) {
		if err != nil {
			return nil, err
		}
		if len(list) == matchesMax {
			return nil, fmt.Errorf("more than %d subjects have a score of %d or more: raise --threshold", matchesMax, *q.Threshold)
		}
		list = append(list, m)
	}
	slices.SortStableFunc(list, func(a, b client.Match) int { return b.Score - a.Score })
	return list, nil
}

// found prints v as JSON, or the list, and returns the exit status.
func (s *session) found(v any, list []client.Match, threshold int) error {
	err := s.print(v, func(w io.Writer) error {
		if len(list) == 0 {
			_, err := fmt.Fprintf(w, "nobody: no subject has a score of %d or more\n", threshold)
			return err
		}
		return writeTable(w, []string{"SUBJECT", "SCORE", "PHOTOS", "EXTERNAL ID"}, list, func(m client.Match, limit int) []string {
			return []string{m.ID, strconv.Itoa(m.Score), strconv.Itoa(m.EventCount), table.Shorten(m.ExternalID, limit)}
		})
	})
	if err == nil && len(list) == 0 {
		return &cli.ExitError{Status: cli.ExitNoMatch}
	}
	return err
}

// verification is what verify prints as JSON.
type verification struct {
	Verified bool `json:"verified"`
	Score    int  `json:"score"`
	// Doubtful reports that the score is in the review band. CaseID is the case of people who review it, or "".
	Doubtful bool   `json:"doubtful,omitzero"`
	CaseID   string `json:"caseId,omitzero"`
}

func (v verification) String() string {
	switch {
	case v.Verified:
		return fmt.Sprintf("the same person: score %d", v.Score)
	case v.CaseID != "":
		return fmt.Sprintf("doubtful, not verified: score %d; people decide on case %s", v.Score, v.CaseID)
	case v.Doubtful:
		return fmt.Sprintf("doubtful, not verified: score %d; no case: there are too many, or the service is too busy", v.Score)
	default:
		return fmt.Sprintf("not the same person: score %d", v.Score)
	}
}

// verifyFlags has the flags of verify.
type verifyFlags struct {
	choice
	reference string
}

func newVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify PHOTO PHOTO|ID", Short: "tell whether a photo shows the person on another photo, or a subject", Args: cli.Args(cobra.ExactArgs(2)),
		Long: "Tell whether a photo shows the person on another photo, or a subject of a gallery. A PHOTO is a file, or -\n" +
			"for the standard input. Two photos are the same person from a score of 7000 on, a subject from the\n" +
			"application's verify threshold on. A score in the application's review band is doubtful: people decide on\n" +
			"its case.\n\n" +
			"The exit status is 0 for the same person, 5 for another one or a doubtful score, and 1 if the verification\n" +
			"failed.",
		Example: "  facet verify passport.jpg selfie.jpg\n  facet verify selfie.jpg 5b0b9b32-8392-8002-b506-6b5b46edb7fa --gallery staff\n" +
			"  facet verify selfie.jpg externalId:M-1041 --reference visits-2026-11-27-12",
	}
	var asked verifyFlags
	asked.flags(cmd.Flags())
	cmd.Flags().StringVar(&asked.reference, "reference", "", "your name of the PHOTO, for people who review a doubtful score of a subject")
	cmd.PreRunE = func(_ *cobra.Command, args []string) error {
		if args[0] == stdin && args[1] == stdin {
			return cli.Misuse(errors.New("only one photo can come from the standard input"))
		}
		return nil
	}
	return onTenant(cmd, func(ctx context.Context, s *session, args []string) error {
		score, err := s.verify(ctx, &asked, args[0], args[1])
		v := verification{Verified: true, Score: score}
		if refused, ok := errors.AsType[*client.Error](err); ok && errors.Is(err, client.ErrNotVerified) && refused.Score != nil {
			v = verification{Score: *refused.Score, Doubtful: refused.Reason == "Doubtful", CaseID: refused.CaseID}
		} else if err != nil {
			return err
		}
		err = s.say(v, "%s", v)
		if err == nil && !v.Verified {
			return &cli.ExitError{Status: cli.ExitNoMatch}
		}
		return err
	})
}

// verify compares the photo probe with a photo or a subject.
func (s *session) verify(ctx context.Context, asked *verifyFlags, probe, with string) (score int, err error) {
	image, err := readPhoto(s.cmd, probe)
	if err != nil {
		return 0, err
	}
	if _, err := os.Stat(with); with == stdin || !errors.Is(err, fs.ErrNotExist) {
		if asked.reference != "" {
			return 0, cli.Misuse(errors.New("--reference is for a subject: nobody reviews two photos"))
		}
		face, err := readPhoto(s.cmd, with)
		if err != nil {
			return 0, err
		}
		return s.VerifyFaces(ctx, face, image)
	}
	inside, err := asked.client(ctx, s)
	if err != nil {
		return 0, err
	}
	got, err := client.CasesOf(inside).Verify(ctx, with, image, asked.reference)
	if errors.Is(err, client.ErrNotFound) {
		err = &refusedError{fmt.Sprintf("%s is no file here and no subject of the gallery", with), err}
	}
	return got.Score, err
}
