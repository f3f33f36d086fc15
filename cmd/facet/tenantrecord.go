package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"facet/cmd/facet/admin"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/table"
	"facet/node/wire"
)

// notStated stands for a text that the tenant has not given.
const notStated = "NOT STATED"

// unknownToFacet is the list of what a record of processing needs and facet does not know.
var unknownToFacet = []string{
	"the controller, its representative and its data protection officer, with their contacts",
	"the categories of people, and what they were told",
	"who receives results beyond the galleries' recipients and the access keys",
	"programs that collect the audit log with an auditor's key, and what they keep",
	"backups made by hand, and how long exports, copies of disks and object stores keep data",
	"the country of each node and of each folder of backups, and transfers to third countries",
	"the photos, which stay in the systems of the tenant",
}

func newTenantRecord() *cobra.Command {
	cmd := &cobra.Command{
		Use: "record NAME", Short: "print the record of processing of a tenant (GDPR Art. 30)", Args: cli.Args(cobra.ExactArgs(1)),
		Long: "Print what facet knows for the record of processing of a tenant: galleries with purpose, legal ground, recipients\n" +
			"and retention, applications and their review, access keys, audit log, backups and nodes. At the end it says what\n" +
			"is missing. The tenant sets purposes: facet gallery update NAME --purpose TEXT --legal-ground TEXT.",
		Example: "  facet tenant record bank\n  facet tenant record bank --json",
	}
	asJSON := cli.JSONFlag(cmd)
	return onCluster(cmd, func(cmd *cobra.Command, c *admin.Client, args []string) error {
		r, err := c.Processing(cmd.Context(), args[0])
		if err != nil {
			return fmt.Errorf("make the record of processing: %w", err)
		}
		if *asJSON {
			return cli.PrintJSON(cmd.OutOrStdout(), r)
		}
		return writeProcessing(cmd.OutOrStdout(), &r)
	})
}

// recordWriter writes the lines of a record of processing. It keeps the first error.
type recordWriter struct {
	w   io.Writer
	err error
}

// line writes a title and a text, which is broken between words.
func (r *recordWriter) line(title, text string) {
	const indent = 16
	if r.err == nil {
		_, r.err = fmt.Fprintf(r.w, "%-*s%s\n", indent, title, table.Wrap(strings.Fields(text), " ", indent))
	}
}

// item writes an item of a list.
func (r *recordWriter) item(text string) {
	const indent = 4
	if r.err == nil {
		_, r.err = fmt.Fprintf(r.w, "  - %s\n", table.Wrap(strings.Fields(text), " ", indent))
	}
}

// heading prints the first line of a part.
func (r *recordWriter) heading(text string) {
	if r.err == nil {
		_, r.err = fmt.Fprintf(r.w, "\n%s\n", text)
	}
}

// writeProcessing prints a record of processing for people.
func writeProcessing(w io.Writer, p *wire.Processing) error {
	r := &recordWriter{w: w}
	r.line("RECORD OF", fmt.Sprintf("processing of biometric data (GDPR Art. 30) of the tenant %q, made %s", p.Name, day(p.Made)))
	r.line("tenant", p.Tenant.String()+", "+p.State)
	r.line("cluster", p.Cluster.String())
	r.line("data", "templates of faces, sealed with a key for each gallery; no photo is kept")
	r.line("model pack", p.Pack)
	r.line("audit log", auditText(p.Audit))
	r.line("backups", scheduleText(p.Backups))
	nodes := make([]string, len(p.Nodes))
	for i, n := range p.Nodes {
		if nodes[i] = n.Name; n.Zone != "" {
			nodes[i] += " (zone " + n.Zone + ")"
		}
	}
	r.line("nodes", strings.Join(nodes, ", "))
	for i := range p.Galleries {
		r.gallery(&p.Galleries[i])
	}
	r.heading("WHO HAS ACCESS, by access keys")
	r.keys(p.Keys)
	r.heading("NOT KNOWN TO FACET")
	for _, text := range unknownToFacet {
		r.item(text)
	}
	if len(p.ToDo) > 0 {
		r.heading("TO DO")
	}
	for _, text := range p.ToDo {
		r.item(text)
	}
	return r.err
}

// gallery writes the part of a gallery.
func (r *recordWriter) gallery(g *wire.ProcessedGallery) {
	r.heading("GALLERY " + g.Name)
	r.line("  id", g.Gallery.String())
	if g.Description != "" {
		r.line("  description", g.Description)
	}
	r.line("  purpose", cmp.Or(g.Purpose, notStated))
	r.line("  legal ground", cmp.Or(g.LegalGround, notStated))
	r.line("  recipients", cmp.Or(g.Recipients, "none stated"))
	r.line("  faces", fmt.Sprintf("%d of %d; a person may have several", g.Faces, g.Size))
	kept := "until they are removed"
	if g.RetentionDays > 0 {
		kept = fmt.Sprintf("%d days after the last update", g.RetentionDays)
	}
	r.line("  kept", kept)
	if g.PhotoLink != "" {
		r.line("  photos", "not in facet, at "+g.PhotoLink)
	}
	for _, a := range g.Applications {
		text := fmt.Sprintf("%s: a match from %d on", a.Name, a.VerifyThreshold)
		if a.ReviewThreshold > 0 {
			text += fmt.Sprintf("; from %d on %d people decide within %d days", a.ReviewThreshold, a.ReviewVerdicts, a.ReviewDays)
		}
		r.line("  application", text)
	}
}

// keys writes the table of the access keys.
func (r *recordWriter) keys(keys []wire.Key) {
	if r.err != nil {
		return
	}
	r.err = table.Write(r.w, func(limit int) []table.Row {
		rows := []table.Row{{Cells: []string{"  ROLE", "HOLDER", "LAST USE", "ENDS"}, List: []string{"ONLY GALLERIES AND NETWORKS"}}}
		for _, k := range keys {
			only := slices.Concat(k.Galleries, k.Networks)
			for i := range only {
				only[i] = table.Shorten(only[i], limit)
			}
			if len(only) == 0 {
				only = []string{"all"}
			}
			rows = append(rows, table.Row{Cells: []string{"  " + k.Role, table.Shorten(orDash(k.Holder), limit), date(k.Used), date(k.End())}, List: only})
		}
		return rows
	})
}

// date returns the day of a time, or "-" for the zero time.
func date(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.DateOnly)
}

// auditText describes an audit log.
func auditText(a wire.Audit) string {
	text := map[string]string{
		"strict": "strict: a record of each request is on a majority of nodes before the answer", "best-effort": "best-effort: a record of each request is on a disk before the answer",
	}[a.Mode]
	if text == "" {
		return "off: requests are not recorded"
	}
	return fmt.Sprintf("%s; contents are kept for %d days, and hashes are never removed", text, a.Days)
}

// scheduleText describes a schedule of backups.
func scheduleText(b *wire.BackupSchedule) string {
	if b == nil {
		return "the node that answered has no schedule"
	}
	every := time.Duration(b.EverySeconds) * time.Second
	return fmt.Sprintf("to %s every %s; the newest %d stay, so what was erased may be there for %s more", b.Folder, long(every), b.Keep, long(time.Duration(b.Keep)*every))
}

// long returns a time for people: in days or hours if it has no parts of them.
func long(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d == day:
		return "day"
	case d%day == 0:
		return fmt.Sprintf("%d days", d/day)
	case d%time.Hour == 0:
		return fmt.Sprintf("%d hours", d/time.Hour)
	default:
		return d.String()
	}
}
