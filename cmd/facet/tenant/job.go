package tenant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"facet.internal/client"
	"facet/cmd/facet/cli"
)

// failuresMax is the most failures of a job that are printed for people.
const failuresMax = 20

func newJob() *cobra.Command {
	return cli.Group(
		&cobra.Command{
			Use: "job", Short: "jobs: registrations of many photos, as facet import --bucket begins them",
			Long: "Jobs register many photos of an object store. facet import --bucket begins them. A job is listed for 30 days.",
		},
		newJobList(), newJobShow(),
	)
}

func newJobList() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "list the jobs of a gallery, the newest first", Args: cli.Args(cobra.NoArgs),
		Example: "  facet job list --gallery staff",
	}
	return onGallery(cmd, func(ctx context.Context, s *session, _ []string) error {
		list, err := s.Jobs(ctx)
		if err != nil {
			return err
		}
		titles := []string{"JOB", "PHOTOS", "DONE", "UPDATED"}
		return printList(s, list, "the gallery has no job: facet import --bucket begins one", titles, func(j client.Job, _ int) []string {
			return []string{j.BatchID, strconv.Itoa(j.Total), strconv.Itoa(j.Done), at(j.LastUpdated)}
		})
	})
}

// jobRecords is what facet job show prints as JSON.
type jobRecords struct {
	ID         string              `json:"batchId"`
	Photos     int                 `json:"photos"`
	Registered int                 `json:"registered"`
	Failed     int                 `json:"failed"`
	Records    []client.BulkRecord `json:"records"`
}

func (j *jobRecords) add(r client.BulkRecord) {
	j.Photos++
	switch r.RegisterStatus {
	case "Success":
		j.Registered++
	case "Failed":
		j.Failed++
	}
	j.Records = append(j.Records, r)
}

func newJobShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show JOB", Short: "show how far a job is, and which photos failed", Args: cli.Args(cobra.ExactArgs(1)),
		Example: "  facet job show 5b0b9b32-8392-8002-b506-6b5b46edb7fa",
	}
	return onGallery(cmd, func(ctx context.Context, s *session, args []string) error {
		j := jobRecords{ID: args[0], Records: []client.BulkRecord{}}
		for r, err := range s.BulkRecords(ctx, args[0]) {
			if errors.Is(err, client.ErrNotFound) {
				return &refusedError{fmt.Sprintf("the gallery has no job %s: facet job list shows them", args[0]), err}
			}
			if err != nil {
				return err
			}
			j.add(r)
		}
		return s.print(j, func(w io.Writer) error { return writeJob(w, j) })
	})
}

func writeJob(w io.Writer, j jobRecords) error {
	err := writePairs(w, "job", j.ID, "photos", fmt.Sprintf("%d: %d registered, %d failed, %d to do", j.Photos, j.Registered, j.Failed, j.Photos-j.Registered-j.Failed))
	shown := 0
	for _, r := range j.Records {
		if err != nil || shown == failuresMax {
			break
		}
		if r.RegisterStatus == "Failed" {
			shown++
			_, err = fmt.Fprintf(w, "%s: %s\n", r.Filename, r.Reason)
		}
	}
	if err == nil && j.Failed > shown {
		_, err = fmt.Fprintf(w, "… and %d more: -o json has all\n", j.Failed-shown)
	}
	return err
}
