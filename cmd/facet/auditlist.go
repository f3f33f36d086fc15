package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"facet.internal/client"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/table"
	"facet/node/wire"
)

// A table of records shows at least so many letters of a holder and of an address: all of an IPv4 address.
// Operations get the rest.
const (
	holderLetters = 10
	sourceLetters = 15
)

// tailInterval is how often facet audit tail looks for new records.
const tailInterval = time.Second

// auditQuery has the flags that choose records.
type auditQuery struct {
	place        logPlace
	q            client.AuditQuery
	since, until string
	json         *bool
}

func (a *auditQuery) flags(f *pflag.FlagSet) {
	a.place.flags(f)
	f.StringVar(&a.q.Operation, "operation", "", "a part of the operation, such as search")
	f.StringVar(&a.q.Holder, "holder", "", "who had the access key")
	f.StringVar(&a.q.Key, "access-key", "", "the access key")
	f.StringVar(&a.q.Kind, "kind", "", "request, intent, withheld, completed, act or command")
	f.IntVar(&a.q.Status, "status", 0, "the status of the answer")
	a.json = f.Bool("json", false, "print each record as a line of JSON")
}

// pages reads pages of a log.
type pages interface {
	AuditRecords(ctx context.Context, q client.AuditQuery) (client.AuditPage, error)
}

func (a *auditQuery) open() (pages, error) {
	if a.place.cluster {
		return a.place.operator()
	}
	return a.place.tenant()
}

func newAuditSearch() *cobra.Command {
	var a auditQuery
	var most int
	cmd := &cobra.Command{
		Use: "search", Short: "print the records of the log, the newest first",
		Long: "Print records of the tenant's audit log, the newest first. It needs an access key of the role auditor or admin.\n" +
			"Reading is recorded, too. Subjects and probes are MACs under the tenant's audit key.\n" +
			"With --cluster it prints the cluster's own log, with an operator's profile.",
		Example: "  facet audit search --operation search --holder \"door 3\" --since 2026-11-01T00:00:00Z --profile auditor.json\n" +
			"  facet audit search --cluster --kind command",
		Args: cli.Args(cobra.NoArgs),
	}
	a.flags(cmd.Flags())
	cmd.Flags().StringVar(&a.since, "since", "", "records from this time on, such as 2026-11-27T15:04:05Z")
	cmd.Flags().StringVar(&a.until, "until", "", "records before this time")
	cmd.Flags().IntVar(&most, "most", 100, "the most records")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		for text, at := range map[*string]*time.Time{&a.since: &a.q.Since, &a.until: &a.q.Until} {
			if *text == "" {
				continue
			}
			var err error
			if *at, err = time.Parse(time.RFC3339, *text); err != nil {
				return cli.Misuse(fmt.Errorf("give a time such as 2026-11-27T15:04:05Z, not %q", *text))
			}
		}
		c, err := a.open()
		if err != nil {
			return err
		}
		const pageMax = 200
		var list []client.AuditRecord
		for len(list) < most {
			a.q.Length = min(pageMax, most-len(list))
			page, err := c.AuditRecords(cmd.Context(), a.q)
			if err != nil {
				return fmt.Errorf("read the audit log: %w", err)
			}
			list = append(list, page.Records...)
			if a.q.Before = page.Next; page.Next == nil {
				break
			}
		}
		return a.print(cmd.OutOrStdout(), list, true)
	}
	return cmd
}

func newAuditTail() *cobra.Command {
	var a auditQuery
	cmd := &cobra.Command{
		Use: "tail", Short: "print new records of the log as they come",
		Long: "Print the newest ten records, and then new ones each second, until Ctrl-C. With --json a collector reads the lines.\n" +
			"It needs an access key of the role auditor or admin. Its own requests are recorded, too, and are not printed.",
		Example: "  facet audit tail --json --profile auditor.json",
		Args:    cli.Args(cobra.NoArgs),
	}
	a.flags(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := a.open()
		if err != nil {
			return err
		}
		return a.tail(cmd.Context(), c, cmd.OutOrStdout())
	}
	return cmd
}

// tail prints records as they come, the oldest first, until ctx ends.
func (a *auditQuery) tail(ctx context.Context, c pages, w io.Writer) error {
	printed, first := uint64(0), true
	for {
		list, size, err := a.newer(ctx, c, printed, first)
		if err != nil {
			return fmt.Errorf("read the audit log: %w", err)
		}
		slices.Reverse(list)
		if err := a.print(w, list, first); err != nil {
			return err
		}
		printed, first = size, false
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(tailInterval):
		}
	}
}

const (
	// tailFirst is how many records a follower begins with. It looks for them in one page of as many, and
	// in tailPages of 200.
	tailFirst, tailPages = 10, 5
)

// newer returns the records from number printed on, or the newest ten of the last thousand, and the log's
// size. It leaves out those of reading the log.
func (a *auditQuery) newer(ctx context.Context, c pages, printed uint64, first bool) (list []client.AuditRecord, size uint64, err error) {
	reading := []string{http.MethodGet + " /api/audit", http.MethodGet + " " + wire.PathAudit}
	q := a.q
	q.Length = tailFirst
	for n := 0; ; n++ {
		page, err := c.AuditRecords(ctx, q)
		if err != nil {
			return nil, 0, err
		}
		if size == 0 {
			size = page.Size // of a later page it would count records that came after the first one
		}
		for _, r := range page.Records {
			if !first && r.Number < printed {
				return list, size, nil
			}
			if !slices.Contains(reading, r.Operation) {
				list = append(list, r)
			}
			if first && len(list) == tailFirst {
				return list, size, nil
			}
		}
		if page.Next == nil || *page.Next <= printed || first && n == tailPages {
			return list, size, nil
		}
		q.Before, q.Length = page.Next, 200
	}
}

// print prints records as a table or as lines of JSON.
func (a *auditQuery) print(w io.Writer, list []client.AuditRecord, head bool) error {
	if *a.json {
		for _, r := range list {
			if _, err := fmt.Fprintf(w, "%s\n", r.Text); err != nil {
				return err
			}
		}
		return nil
	}
	var b strings.Builder
	err := table.Write(&b, func(limit int) (rows []table.Row) {
		if head {
			rows = append(rows, table.Row{Cells: []string{"NUMBER", "TIME", "KIND", "STATUS", "HOLDER", "SOURCE", "OPERATION"}})
		}
		for _, r := range list {
			status := "-" // an intent, a command
			if r.Status != 0 {
				status = strconv.Itoa(r.Status)
			}
			rows = append(rows, table.Row{Cells: []string{
				strconv.FormatUint(r.Number, 10), r.Time.UTC().Format(time.DateTime + "Z"), r.Kind, status,
				table.Shorten(cmp.Or(r.Holder, r.Key), max(limit/3, holderLetters)), table.Shorten(r.Source, max(limit/3, sourceLetters)), table.Shorten(r.Operation, limit),
			}})
		}
		return rows
	})
	if err != nil {
		return err
	}
	lines := slices.Collect(strings.Lines(b.String()))
	if head {
		if _, err := io.WriteString(w, lines[0]); err != nil {
			return err
		}
		lines = lines[1:]
	}
	for i, r := range list {
		if _, err := io.WriteString(w, lines[i]+detail("about", r.Reason)+detail("purpose", r.Purpose)); err != nil {
			return err
		}
	}
	return nil
}

// detail returns lines below a record: a title and a text, or nothing without a text.
func detail(title, text string) string {
	if text == "" {
		return ""
	}
	title = "        " + title + ": "
	return title + table.Wrap(strings.Fields(text), " ", len(title)) + "\n"
}
