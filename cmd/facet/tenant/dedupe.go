package tenant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"facet.internal/client"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/printable"
	"facet/cmd/facet/process"
)

const (
	// dedupeThreshold is the default threshold of facet dedupe.
	dedupeThreshold = 9000
	// dedupePause is how often its progress is asked for. Elsewhere than on a terminal a line comes every
	// dedupeLines.
	dedupePause = time.Second
	dedupeLines = 10 * time.Second
	// pairsShown is the most pairs that are printed for people.
	pairsShown = 200
)

// comparison is what facet dedupe prints as JSON.
type comparison struct {
	client.Duplicates
	Pairs []client.Pair `json:"pairs"`
}

func newDedupe() *cobra.Command {
	cmd := &cobra.Command{
		Use: "dedupe", Short: "find subjects of a gallery that seem to show one person", Args: cli.Args(cobra.NoArgs),
		Long: "Compare a gallery with itself, and list the pairs of subjects with at least this score, group by group.\n" +
			"The cluster works on it beside other requests, also when this command ends and when nodes fail; the same command with\n" +
			"--show waits for it and prints the report, which stays for 30 days. Only one report of a gallery is kept.\n\n" +
			"A score is no proof: a million people have 500 thousand million pairs. Look at both before you merge or erase.",
		Example: "  facet dedupe --gallery staff --threshold 9200\n  facet dedupe --show -o json > pairs.json\n" +
			"  facet subject merge ID OTHER-ID                 # somebody has looked at both\n  facet dedupe --drop",
	}
	f := cmd.Flags()
	threshold := f.Int("threshold", dedupeThreshold, "the lowest score of a pair, 7000 to 9999")
	show := f.Bool("show", false, "print the report of the last comparison, and begin none")
	drop := f.Bool("drop", false, "drop the report, and end a comparison under way")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if *show && *drop || f.Changed("threshold") && (*show || *drop) {
			return cli.Misuse(errors.New("--threshold, --show and --drop exclude each other"))
		}
		return nil
	}
	return onGallery(cmd, func(ctx context.Context, s *session, _ []string) error {
		if *drop {
			if err := s.EndDuplicates(ctx); err != nil {
				return err
			}
			return s.say(deleted{Deleted: true}, "there is no report of a comparison of this gallery any more")
		}
		begun := ""
		if !*show {
			var err error
			if begun, err = s.BeginDuplicates(ctx, threshold); err != nil {
				return err
			}
		}
		d, err := s.compared(ctx, begun)
		if errors.Is(err, client.ErrNotFound) {
			return &refusedError{"the gallery was not compared with itself yet: facet dedupe", err}
		}
		if err != nil {
			return err
		}
		return s.print(d, func(w io.Writer) error { return writeComparison(w, d) })
	})
}

// compared waits for the end of a comparison, shows how far it is, and returns its report. begun is the comparison
// that it must be, or empty.
func (s *session) compared(ctx context.Context, begun string) (c comparison, err error) {
	out, terminal := s.cmd.ErrOrStderr(), process.IsTerminal(os.Stderr)
	for shown := time.Now(); ; {
		if c.Duplicates, err = s.Duplicates(ctx, "", 0); err != nil {
			return c, err
		}
		if begun != "" && c.BatchID != begun {
			return c, errors.New("somebody else has begun another comparison of this gallery, which ended this one: facet dedupe --show waits for it")
		}
		if c.Status == "Done" {
			break
		}
		text := fmt.Sprintf("%d of %d parts compared, %d pairs found", c.Done, c.Total, c.Found)
		if terminal {
			fmt.Fprintf(printable.Raw(out), "\r\x1b[K%s", text)
		} else if time.Since(shown) >= dedupeLines {
			shown = time.Now()
			fmt.Fprintln(out, text)
		}
		select {
		case <-time.After(dedupePause):
		case <-ctx.Done():
			return c, ctx.Err()
		}
	}
	if terminal {
		fmt.Fprint(printable.Raw(out), "\r\x1b[K")
	}
	c.Pairs = []client.Pair{}
	for p, err := range s.Pairs(ctx) {
		if err != nil {
			return c, err
		}
		c.Pairs = append(c.Pairs, p)
	}
	c.Next = ""
	return c, nil
}

// inGroups and leftOut return for people how many pairs there are, and how many are left out.
func inGroups(pairs, groups int) string {
	if groups == 1 {
		return fmt.Sprintf("%d in 1 group", pairs)
	}
	return fmt.Sprintf("%d in %d groups", pairs, groups)
}

func leftOut(different int) string {
	if different == 0 {
		return ""
	}
	return fmt.Sprintf("%d of different people", different)
}

func writeComparison(w io.Writer, c comparison) error {
	err := writePairs(w, "threshold", strconv.Itoa(c.Threshold), "pairs", inGroups(len(c.Pairs), c.Groups), "left out", leftOut(c.Different))
	if err != nil {
		return err
	}
	if c.Incomplete {
		why := "there are too many: raise the threshold, or merge and erase, and compare again"
		if c.Reason != "" {
			why = c.Reason
		}
		if _, err = fmt.Fprintf(w, "NOT COMPLETE: %s\n", why); err != nil {
			return err
		}
	}
	if len(c.Pairs) == 0 {
		return nil
	}
	titles := []string{"GROUP", "SCORE", "SUBJECT", "SUBJECT"}
	err = writeTable(w, titles, c.Pairs[:min(len(c.Pairs), pairsShown)], func(p client.Pair, _ int) []string {
		return []string{strconv.Itoa(p.Group), strconv.Itoa(p.Score), p.Subjects[0].ID, p.Subjects[1].ID}
	})
	if err == nil && len(c.Pairs) > pairsShown {
		_, err = fmt.Fprintf(w, "… and %d more: -o json has all, with external ids\n", len(c.Pairs)-pairsShown)
	}
	return err
}
