package erasing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"facet.internal/client"
	"facet/cmd/facet/admin"
	"facet/internal/id"
	"facet/node/receipt"
)

// waitPause is the pause between two looks at the rounds of the nodes.
const waitPause = 10 * time.Second

// errWent is returned for a subject that was listed and then went, not by this command.
var errWent = errors.New("it went after it was listed: it was removed, it expired, or it was merged into another subject, which then has its faces; " +
	"look for the person by --photo, and with --gone the receipt has this subject, too")

// mergedAway is a subject that was merged into another one before it was erased.
type mergedAway struct {
	receipt.Subject
	into string // the other one
	err  error
}

// Erase erases the subjects of a list and returns what their receipt begins with. After an error
// it returns those that are erased. A subject that was merged into another one after it was listed
// is erased if the list has the other one, too.
func Erase(ctx context.Context, list []Found) (done []receipt.Subject, err error) {
	var merged []mergedAway
	var failed []error
	for _, f := range list {
		if len(failed) > 0 {
			break
		}
		s, err := f.erase(ctx)
		if err != nil {
			err = fmt.Errorf("erase subject %s of gallery %q: %w", f.Subject, f.gallery.Name, err)
		}
		e, refused := errors.AsType[*client.Error](err)
		switch {
		case err == nil:
			done = append(done, s)
		case refused && e.Is(client.ErrMerged):
			s.RequestID, s.Gone = e.RequestID, true
			merged = append(merged, mergedAway{s, e.Into, fmt.Errorf("%w\nErase that subject, too: facet erase %s", err, e.Into)})
		default:
			failed = append(failed, err)
		}
	}
	for _, m := range merged {
		if slices.ContainsFunc(done, func(s receipt.Subject) bool { return s.Gallery == m.Gallery && s.Subject.String() == m.into }) {
			done = append(done, m.Subject)
		} else {
			failed = append(failed, m.err)
		}
	}
	return done, errors.Join(failed...)
}

// erase erases the subject and returns what a receipt has of it.
func (f Found) erase(ctx context.Context) (s receipt.Subject, err error) {
	s = receipt.Subject{GalleryName: f.gallery.Name, Events: f.Events, Score: f.Score}
	if s.Gallery, s.Subject, err = f.ids(); err != nil {
		return s, err
	}
	_, err = f.client.Events(ctx, f.Subject)
	went := errors.Is(err, client.ErrNotFound)
	if err != nil && !went {
		return s, err
	}
	e, err := f.client.Erase(ctx, f.Subject)
	s.Answered, s.RequestID, s.Commit, s.Gone = time.Now().UTC(), e.RequestID, e.Commit, e.Gone
	if err == nil && went && f.Events > 0 {
		err = errWent
	}
	return s, err
}

// Wait says how long a command waits.
type Wait string

// The values of Wait.
const (
	WaitNot   Wait = ""
	WaitDisks Wait = "disks" // until no disk of a node has anything of the subjects
	WaitAll   Wait = "all"   // until no backup has, either
)

// Keeper keeps a receipt in a file.
type Keeper struct {
	File  string
	Admin *admin.Client
	// Order has the folders of backups, and orders rounds.
	Order receipt.Order
	Wait  Wait
	Out   io.Writer
}

// Begin gets a receipt for erased subjects and keeps it up to date as long as k.Wait says. If the
// cluster gives none, Begin writes the subjects to the file, unsigned, for Continue.
func (k *Keeper) Begin(ctx context.Context, subjects []receipt.Subject) (*receipt.Receipt, error) {
	k.Order.Subjects = subjects
	r, err := k.keep(ctx)
	if err == nil || k.Order.Signed != nil {
		return r, err
	}
	text, failed := json.MarshalIndent(receipt.Order{Subjects: subjects, Folders: k.Order.Folders}, "", " ")
	if failed == nil {
		failed = write(k.File, append(text, '\n'))
	}
	if failed != nil {
		return nil, errors.Join(err, failed)
	}
	return nil, fmt.Errorf("%w\nThe subjects are erased. There is no signed receipt yet: when the cluster answers, run \"facet erase continue %s\"", err, k.File)
}

// Continue brings the receipt in the file up to date, as long as k.Wait says.
func (k *Keeper) Continue(ctx context.Context) (*receipt.Receipt, error) {
	text, err := Read(k.File)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(string(text), "{") {
		var begun receipt.Order
		if err := json.Unmarshal(text, &begun); err != nil {
			return nil, fmt.Errorf("read %s: %w", k.File, err)
		}
		k.Order.Subjects, k.Order.Folders = begun.Subjects, append(k.Order.Folders, begun.Folders...)
	} else {
		k.Order.Signed = text
	}
	return k.keep(ctx)
}

func (k *Keeper) keep(ctx context.Context) (*receipt.Receipt, error) {
	said := ""
	for {
		a, err := k.Admin.Receipt(ctx, k.Order)
		if err != nil {
			return nil, fmt.Errorf("get a receipt: %w", err)
		}
		r, err := receipt.Open(a.Signed, a.PublicKey)
		if err == nil {
			err = write(k.File, a.Signed)
		}
		if err != nil {
			return nil, err
		}
		k.Order.Signed, k.Order.Subjects = a.Signed, nil
		if k.Wait == WaitNot || r.Complete || k.Wait == WaitDisks && r.DisksClean {
			return r, nil
		}
		if now := missing(r); now != said {
			fmt.Fprintf(k.Out, "%s waiting for\n  %s\n", time.Now().UTC().Format(time.TimeOnly), now)
			said = now
		}
		select {
		case <-time.After(waitPause):
		case <-ctx.Done():
			return r, ctx.Err()
		}
	}
}

// missing returns what a receipt lacks, with the names of nodes alone. Nodes that share a name
// keep their ids.
func missing(r *receipt.Receipt) string {
	text, ids := strings.Join(r.Missing, "\n  "), map[string]id.Node{}
	for _, row := range r.Replicas {
		if first, ok := ids[row.Name]; ok && first != row.Node {
			return text
		}
		ids[row.Name] = row.Node
	}
	for name, node := range ids {
		text = strings.ReplaceAll(text, fmt.Sprintf("%s (%s)", name, node), name)
	}
	return text
}

// Read reads a receipt's file.
func Read(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read the receipt: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, receipt.BytesMax+1))
	if err != nil {
		return nil, fmt.Errorf("read the receipt: %w", err)
	}
	return text, nil
}

// write replaces a file, by rename.
func write(name string, text []byte) error {
	err := os.WriteFile(name+".new", text, 0o600)
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		return fmt.Errorf("write the receipt: %w", err)
	}
	return nil
}

// WriteReceipt prints a receipt for people.
func WriteReceipt(w io.Writer, r *receipt.Receipt) error {
	fmt.Fprintf(w, "tenant %s · cluster %s · reported %s\n\n", r.Tenant, r.Cluster, at(r.Reported))
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "GALLERY\tSUBJECT\tANSWERED\tREQUEST ID\tGROUP\tINDEX")
	for _, s := range r.Subjects {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d\n", s.GalleryName, s.Subject, at(s.Answered), s.RequestID, s.Group, s.Index)
	}
	fmt.Fprintln(t, "\nGROUP\tNODE\tSTATE\tLAST ROUND BEGAN\tERASED TO\tDISK")
	for _, n := range r.Replicas {
		disk := "clean"
		if !n.Clean {
			disk = n.Why
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%d\t%s\n", n.Group, n.Name, n.State, at(n.Began), n.ErasedTo, disk)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, n := range r.Removed {
		fmt.Fprintf(w, "\nnode %s (%s) was removed from the cluster: facet does not see its disk; wipe it\n", n.Name, n.Node)
	}
	for _, b := range r.Backups {
		goes := "an operator must remove it"
		if !b.Goes.IsZero() {
			goes = "the schedule removes it about " + at(b.Goes)
		}
		fmt.Fprintf(w, "\nbackup %s in %s, of %s, may hold them: %s\n", b.Name, b.Folder, at(b.Created), goes)
	}
	state := "NOT COMPLETE"
	switch {
	case r.Complete:
		state = "COMPLETE: no node of the cluster and no backup listed has anything of these subjects"
	case r.DisksClean:
		state = "NOT COMPLETE: the disks of all nodes are clean, and backups remain"
	}
	_, err := fmt.Fprintf(w, "\n%s\n", state)
	return err
}

func at(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.DateTime + "Z")
}
