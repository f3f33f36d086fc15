package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"facet.internal/client"
	"facet/cmd/facet/dev"
	"facet/internal/testkit/launch"
)

const (
	// startTimeout is how long the cluster may take to serve, and a node to catch up.
	startTimeout = 2 * time.Minute
	pause        = 20 * time.Millisecond // between two looks
	// goneLimit is how long after its time an event may match: docs/interface.md promises it.
	goneLimit = 5 * time.Second
	// visit is how long the visitor stays.
	visit = 20 * time.Second
	// shownMax is the most photos in the answer of a search.
	shownMax = 50
)

// until looks until a condition holds. It ends with an error after startTimeout.
func until(ctx context.Context, what string, holds func() (bool, error)) error {
	for end := time.Now().Add(startTimeout); ; {
		ok, err := holds()
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", what, err)
		case ok:
			return nil
		case time.Now().After(end):
			return fmt.Errorf("%s: not within %s", what, startTimeout)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// open starts the cluster and makes the gallery.
func (w *week) open(ctx context.Context) (err error) {
	if w.cluster, err = w.start("facet dev"); err != nil {
		return err
	}
	err = until(ctx, "start the cluster", func() (bool, error) {
		if w.cluster.Ended() {
			return false, errors.New(w.cluster.Out.String())
		}
		w.info, err = dev.ReadInfo(filepath.Join(w.dir, "dev"))
		return err == nil, nil
	})
	if err != nil {
		return err
	}
	w.show(w.cluster.Out.String())
	// Room for all rows, the copies of a merge and the visitor.
	w.run(ctx, 0, fmt.Sprintf("facet gallery create %s --size %d", gallery, w.people+10))
	w.run(ctx, 0, "facet tag create staff")
	return w.connect(ctx)
}

// connect makes a client of each node, for the checks.
func (w *week) connect(ctx context.Context) error {
	said, err := w.quiet(ctx, "facet gallery show "+gallery+" -o json")
	if err != nil {
		return err
	}
	var made client.Gallery
	if err := json.Unmarshal([]byte(said.text), &made); err != nil || len(made.Applications) == 0 {
		return fmt.Errorf("read the gallery: %w: %s", err, said.text)
	}
	w.apiKey = made.Applications[0].APIKey
	for _, n := range w.info.Nodes {
		c, err := client.New(client.Config{
			BaseURLs: []string{n.URL}, CAFile: w.info.CAFile, AccessKey: w.info.AccessKey, SecretKey: w.info.SecretKey,
			Region: w.info.Region, Service: w.info.Service, APIKey: w.apiKey,
		})
		if err != nil {
			return err
		}
		w.nodes = append(w.nodes, c)
	}
	return nil
}

// count returns how many events the gallery has, as a node says.
func (w *week) count(ctx context.Context, node int) (int, error) {
	page, err := w.nodes[node].Subjects(ctx, client.Page{Length: 1})
	return page.Total, err
}

func (w *week) monday(ctx context.Context) error {
	w.head("Monday: the list comes in, and a node dies")
	if err := w.open(ctx); err != nil {
		return err
	}
	w.run(ctx, 0, "head -n 3 members.csv")
	const line = "facet import members.csv --tag staff"
	job, err := w.start(line)
	if err != nil {
		return err
	}
	if err := w.accident(ctx, job); err != nil {
		return err
	}
	w.say("wait")
	said, err := wait(ctx, job)
	if err != nil {
		return err
	}
	w.show(end(said.text))
	if err := errors.Join(said.want(1, line), w.checkReport()); err != nil {
		return err
	}
	err = until(ctx, "the killed node catches up", func() (bool, error) {
		said, err = w.quiet(ctx, "facet status")
		return said.status == 0, err
	})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, said.text)
	}
	for i, n := range w.info.Nodes {
		in, err := w.count(ctx, i)
		if err := errors.Join(err, w.same("members, asked at "+n.Name, in, len(w.list)-3)); err != nil {
			return err
		}
	}
	w.tell("The same command again sends nothing that is in:")
	w.run(ctx, 1, line)
	return w.checkReport()
}

// accident kills the second node while the import runs, and starts it again.
func (w *week) accident(ctx context.Context, imported *launch.Process) error {
	reach := func(share int) error {
		return until(ctx, fmt.Sprintf("%d rows are in", share), func() (bool, error) {
			if imported.Ended() {
				return false, fmt.Errorf("the import ended:\n%s", &imported.Out)
			}
			in, err := w.count(ctx, 0)
			return in >= share, err
		})
	}
	victim := w.info.Nodes[1]
	if err := reach(w.people / 5); err != nil {
		return err
	}
	w.run(ctx, 0, fmt.Sprintf("kill -9 %d   # %s", victim.PID, victim.Name))
	killed, err := w.count(ctx, 0)
	if err != nil {
		return err
	}
	if err := reach(w.people / 2); err != nil {
		return err
	}
	w.tell("%d rows were in when %s died; with two nodes the import went on. %s comes back:", killed, victim.Name, victim.Name)
	_, err = w.start("facet " + strings.Join(victim.Cmd[1:], " "))
	return err
}

func (w *week) tuesday(ctx context.Context) error {
	w.head("Tuesday: who is a member?")
	w.run(ctx, 0, fmt.Sprintf("facet subject show externalId:%d", asked))
	w.run(ctx, 1, "facet subject show externalId:9999")
	w.tell("Does the photo show her? Does another member's?")
	w.run(ctx, 0, fmt.Sprintf("facet verify photos/%d.jpg externalId:%d", asked, asked))
	w.run(ctx, 5, fmt.Sprintf("facet verify photos/%d.jpg externalId:%d", asked+1, asked))
	w.tell("Every id of the list, each asked at another node:")
	return w.lookUp(ctx, w.all())
}

// lookUp asks for each external id of the list and compares the answers with those that
// should be known.
func (w *week) lookUp(ctx context.Context, want []string) error {
	var known []string
	for i, m := range w.list {
		found, err := w.nodes[i%len(w.nodes)].SubjectsWith(ctx, m.externalID)
		if err != nil {
			return err
		}
		if len(found.Subjects) == 0 {
			continue
		}
		if got, want := found.Subjects[0].ID, w.subjects[m.externalID]; got != want {
			return fmt.Errorf("%s is subject %s, want %s", m.externalID, got, want)
		}
		known = append(known, m.externalID)
	}
	slices.Sort(known)
	return w.sameIDs("members found by their ids", known, want)
}

func (w *week) wednesday(ctx context.Context) error {
	first, second := w.only(doubled), w.only(doubledAgain)
	w.head("Wednesday: a person is in the list twice")
	if err := w.searchFinds(ctx, "third.jpg", first, second); err != nil {
		return err
	}
	w.run(ctx, 0, fmt.Sprintf("facet subject merge externalId:%s externalId:%s", first, second))
	if err := w.searchFinds(ctx, "third.jpg", first); err != nil {
		return err
	}
	events, err := w.nodes[0].Events(ctx, client.External(first))
	if err := errors.Join(err, w.same("photos of "+first, len(events), 2)); err != nil {
		return err
	}
	w.run(ctx, 1, "facet subject show externalId:"+second)
	return w.err
}

// searchFinds searches by a photo and compares the external ids of all candidates.
func (w *week) searchFinds(ctx context.Context, photo string, want ...string) error {
	w.run(ctx, 0, "facet search "+photo)
	got, err := w.found(ctx, photo)
	if err != nil {
		return err
	}
	return w.sameIDs("members found by "+photo, got, slices.Sorted(slices.Values(want)))
}

// found returns the external ids of all candidates of a search, sorted.
func (w *week) found(ctx context.Context, photo string) (ids []string, err error) {
	line := fmt.Sprintf("facet search %s --limit %d -o json", photo, shownMax)
	said, err := w.quiet(ctx, line)
	if err := errors.Join(err, said.want(0, line)); err != nil {
		return nil, err
	}
	var result client.SearchResult
	if err := json.Unmarshal([]byte(said.text), &result); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	for _, c := range result.Candidates {
		ids = append(ids, c.ExternalID)
	}
	slices.Sort(ids)
	return ids, nil
}

func (w *week) thursday(ctx context.Context) error {
	w.head("Thursday: whom does a photo show that was never enrolled?")
	w.run(ctx, 5, "facet search visitor.jpg")
	w.run(ctx, 0, "facet search other.jpg --limit 5")
	want := good(w.list, crowd[0])
	got, err := w.found(ctx, "other.jpg")
	if err != nil {
		return err
	}
	for _, id := range got {
		if _, ok := slices.BinarySearch(want, id); !ok {
			return fmt.Errorf("the search found %s, who has another face", id)
		}
	}
	if err := w.same(fmt.Sprintf("members found with --limit %d", shownMax), len(got), min(shownMax, len(want))); err != nil {
		return err
	}
	if err := w.matches(ctx, "other.jpg", want); err != nil {
		return err
	}
	return w.visit(ctx)
}

// matches compares the external ids of all subjects at or above the threshold, asked at each node.
func (w *week) matches(ctx context.Context, photo string, want []string) error {
	probe, err := os.ReadFile(filepath.Join(w.dir, photo))
	if err != nil {
		return err
	}
	for i, n := range w.info.Nodes {
		var got []string
		for m, err := range w.nodes[i].Matches(ctx, client.MatchQuery{Probe: probe}) {
			if err != nil {
				return err
			}
			got = append(got, m.ExternalID)
		}
		slices.Sort(got)
		if err := w.sameIDs("all matches, POST /v1.1/face/matches at "+n.Name, got, want); err != nil {
			return err
		}
	}
	return nil
}

// visit enrols a visitor for some seconds.
func (w *week) visit(ctx context.Context) error {
	w.tell("She is a visitor, until %s from now:", visit)
	w.run(ctx, 0, fmt.Sprintf("facet enrol visitor.jpg --external-id visitor-1 --expires %s", visit))
	w.expires = time.Now().Add(visit)
	return w.searchFinds(ctx, "visitor.jpg", "visitor-1")
}

func (w *week) friday(ctx context.Context) error {
	w.head("Friday: a person wants to be forgotten, and the visitor's time is over")
	leaves := w.only(erased)
	if err := w.erase(ctx, leaves); err != nil {
		return err
	}
	for _, line := range []string{"facet search leaves.jpg", "facet subject show externalId:" + leaves} {
		status := 5 // nobody
		if strings.Contains(line, "show") {
			status = 1
		}
		w.run(ctx, status, line)
	}
	w.run(ctx, 0, "facet cluster status | grep ^facet- | tee cluster.pub")
	return w.leave(ctx)
}

// erase erases a member by a photo, and keeps the receipt.
func (w *week) erase(ctx context.Context, externalID string) error {
	const line = "facet erase --photo leaves.jpg --now --wait=disks --yes --receipt leaves.receipt"
	w.say(line)
	said, err := w.quiet(ctx, line)
	if err := errors.Join(err, said.want(0, line)); err != nil {
		return err
	}
	w.show(end(said.text))
	if subject := w.subjects[externalID]; strings.Count(said.text, subject) != 2 || !strings.Contains(said.text, "\nCOMPLETE") {
		return fmt.Errorf("the receipt is not complete, or not of %s:\n%s", subject, said.text)
	}
	return nil
}

// leave waits until the visitor's time is over, and looks how long a search still finds her.
func (w *week) leave(ctx context.Context) error {
	select {
	case <-time.After(time.Until(w.expires)):
	case <-ctx.Done():
		return ctx.Err()
	}
	const line = "facet search visitor.jpg"
	for {
		begun := time.Now()
		said, err := w.quiet(ctx, line)
		switch late := begun.Sub(w.expires); {
		case err != nil:
			return err
		case said.status == 5:
			w.say(line)
			w.show(said.text)
			w.tell("✓ the visitor is gone, seen %.1f s after her time", late.Seconds())
			return nil
		case said.status != 0 || late > goneLimit:
			return fmt.Errorf("the visitor %.1f s after her time: exit status %d\n%s", late.Seconds(), said.status, said.text)
		}
	}
}

func (w *week) weekend(ctx context.Context) error {
	w.head("The weekend: what is left?")
	w.run(ctx, 0, "facet subject list --all -o json > members.json; grep -c externalId members.json")
	text, err := os.ReadFile(filepath.Join(w.dir, "members.json"))
	if err != nil {
		return err
	}
	var list []client.Entry
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("read the export: %w", err)
	}
	gone := []string{w.only(doubledAgain), w.only(erased)}
	want := slices.DeleteFunc(w.all(), func(id string) bool { return slices.Contains(gone, id) })
	var ids []string
	for _, e := range list {
		if e.ID != w.subjects[e.ExternalID] {
			return fmt.Errorf("the export has %s as subject %s, want %s", e.ExternalID, e.ID, w.subjects[e.ExternalID])
		}
		ids = append(ids, e.ExternalID)
	}
	slices.Sort(ids)
	// Each has one photo, and the one that was merged has two.
	if err := w.same("photos in the export", len(ids), len(want)+1); err != nil {
		return err
	}
	if err := w.sameIDs("members in the export", slices.Compact(ids), want); err != nil {
		return err
	}
	if err := w.lookUp(ctx, want); err != nil {
		return err
	}
	if err := w.stop(); err != nil {
		return err
	}
	w.tell("The cluster has stopped. The receipt proves the erasure without it:")
	w.run(ctx, 0, `facet erase verify leaves.receipt --key "$(cat cluster.pub)"`)
	w.run(ctx, 1, `sed s/members/friends/ leaves.receipt > forged; facet erase verify forged --key "$(cat cluster.pub)"`)
	return w.err
}
