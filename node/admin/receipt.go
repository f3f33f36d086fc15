package admin

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"facet/internal/id"
	"facet/node/receipt"
	"facet/node/replicas"
	"facet/raftfsm/metafsm"
	"facet/router"
)

const (
	// confirmFanOut is the most subjects that are confirmed at once.
	confirmFanOut = 16
	// claimMax is the most bytes of a text that the operator's command has noted.
	claimMax = 1024
	// foldersMax is the most folders of backups on a receipt.
	foldersMax = 8
)

// Receipts makes the receipts of erasures.
type Receipts struct{ *Port }

// Receipts returns the part of the port that makes receipts.
func (p *Port) Receipts() Receipts { return Receipts{p} }

// Receipt returns a signed receipt of erasures: a new one, or one that it has brought up to date.
func (p Receipts) Receipt(ctx context.Context, o receipt.Order) (a receipt.Answer, err error) {
	cluster, key, err := p.cfg.Router.Signer()
	if err != nil {
		return a, err
	}
	if a.PublicKey, err = receipt.PublicKey(cluster, key.Public().(ed25519.PublicKey)); err != nil { //nolint:forcetypeassert // by its doc
		return a, err
	}
	r := &receipt.Receipt{Format: receipt.Format, Cluster: cluster, Subjects: o.Subjects}
	if o.Signed != nil {
		if r, err = receipt.Open(o.Signed, a.PublicKey); err != nil {
			return a, router.Errorf(router.InvalidRequest, "", "%v: only the cluster that has signed a receipt brings it up to date", err)
		}
	} else if err := checkClaims(r); err != nil {
		return a, err
	}
	if err := p.confirm(ctx, r, o.Signed != nil); err != nil {
		return a, err
	}
	p.report(ctx, r, o.Now)
	if len(r.Missing) == 0 {
		// A leader that was asked after another replica may have sent it a snapshot with erased data in
		// between, before its own round. Reports that are all clean twice leave no such time.
		p.report(ctx, r, false)
	}
	r.DisksClean = len(r.Missing) == 0
	if err := p.backups(ctx, r, o.Folders); err != nil {
		return a, err
	}
	r.Complete = len(r.Missing) == 0
	a.Signed, err = receipt.Sign(r, key)
	return a, err
}

// checkClaims bounds what the operator's command has noted. What the cluster attests is cleared.
func checkClaims(r *receipt.Receipt) error {
	if len(r.Subjects) == 0 || len(r.Subjects) > receipt.SubjectsMax {
		return router.Errorf(router.InvalidRequest, "", "a receipt has 1 to %d subjects", receipt.SubjectsMax)
	}
	for i := range r.Subjects {
		s := &r.Subjects[i]
		if len(s.ExternalID)+len(s.RequestID)+len(s.Commit) > claimMax {
			return router.Errorf(router.InvalidRequest, "", "an external id, a request id or a place of a commit is too long")
		}
		s.Group, s.Index, s.Confirmed, s.GalleryName = 0, 0, time.Time{}, ""
	}
	return nil
}

// confirm makes sure that no subject is there. With again the subjects were confirmed before.
func (p Receipts) confirm(ctx context.Context, r *receipt.Receipt, again bool) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(confirmFanOut)
	for i := range r.Subjects {
		work.Go(func() error {
			s := &r.Subjects[i]
			at, err := p.cfg.Router.SubjectGone(ctx, s.Gallery, s.Subject)
			switch {
			case again && router.KindOf(err) == router.NotFound: // the gallery is gone, too
				return nil
			case err != nil || again:
				return err
			}
			s.Group, s.Index, s.Confirmed = at.Group, at.Index, time.Now().UTC()
			return nil
		})
	}
	if err := work.Wait(); err != nil || again {
		return err
	}
	return p.nameAll(r)
}

// nameAll fills in the names of the galleries and of their tenant.
func (p Receipts) nameAll(r *receipt.Receipt) error {
	var owner id.Tenant
	for i := range r.Subjects {
		s := &r.Subjects[i]
		g, _ := p.cfg.Replicas.Meta().Gallery(s.Gallery)
		if owner.IsZero() {
			owner = g.Tenant
		}
		if g.Tenant != owner {
			return router.Errorf(router.InvalidRequest, "", "the galleries of a receipt are of one tenant")
		}
		s.GalleryName = g.Name
	}
	for _, t := range p.cfg.Replicas.Meta().Tenants() {
		if t.ID == owner {
			r.Tenant = t.Name
		}
	}
	return nil
}

// place is a node's place in a group.
type place struct {
	group id.Shard
	node  id.Node
}

// report asks the nodes for their rounds, and notes what is missing. now orders rounds.
func (p Receipts) report(ctx context.Context, r *receipt.Receipt, now bool) {
	last, removed := map[place]receipt.Replica{}, map[id.Node][]receipt.Replica{}
	for _, row := range r.Replicas {
		last[place{row.Group, row.Node}] = row
	}
	for _, m := range r.Removed {
		removed[m.Node] = m.Last
	}
	needed := r.Needed()
	q := replicas.ErasureQuery{Now: now}
	for _, g := range slices.Sorted(maps.Keys(needed)) {
		q.Groups = append(q.Groups, replicas.ErasureNeeded{Group: g, Index: needed[g]})
	}
	r.Reported, r.Replicas, r.Removed, r.Missing = time.Now().UTC(), nil, nil, nil
	var mu sync.Mutex // guards r.Replicas
	var work sync.WaitGroup
	slots := make(chan struct{}, statusFanOut)
	for _, n := range p.cfg.Replicas.Meta().Nodes() {
		if n.State == metafsm.NodeRemoved {
			gone := receipt.Removed{Node: n.ID, Name: n.Name, Last: removed[n.ID]}
			for _, g := range q.Groups {
				if row, ok := last[place{g.Group, n.ID}]; ok {
					gone.Last = append(gone.Last, row)
				}
			}
			r.Removed = append(r.Removed, gone)
			continue
		}
		work.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			rows := p.reportOf(ctx, n, q, last)
			mu.Lock()
			defer mu.Unlock()
			r.Replicas = append(r.Replicas, rows...)
		})
	}
	work.Wait()
	slices.SortFunc(r.Replicas, func(a, b receipt.Replica) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Name+a.Node.String(), b.Name+b.Node.String()))
	})
	for _, row := range r.Replicas {
		if !row.Clean {
			r.Missing = append(r.Missing, fmt.Sprintf("%s on node %s (%s): %s", replicas.Name(row.Group), row.Name, row.Node, row.Why))
		}
	}
}

// reportOf returns what a node reports, or its last reports if it does not answer.
func (p Receipts) reportOf(ctx context.Context, n metafsm.Node, q replicas.ErasureQuery, last map[place]receipt.Replica) (rows []receipt.Replica) {
	list, err := replicas.Erasures{Replicas: p.cfg.Replicas}.Ask(ctx, n.Member, q)
	if err != nil {
		for _, g := range q.Groups {
			row := last[place{g.Group, n.ID}]
			row.Group, row.Node, row.Name, row.State, row.Needed = g.Group, n.ID, n.Name, stateNames[n.State], g.Index
			row.Clean, row.Why = false, "the node does not answer"
			rows = append(rows, row)
		}
		return rows
	}
	needed := map[id.Shard]uint64{}
	for _, g := range q.Groups {
		needed[g.Group] = g.Index
	}
	for _, e := range list {
		row := receipt.Replica{
			Group: e.Group, Node: n.ID, Name: n.Name, State: stateNames[n.State], Needed: needed[e.Group],
			Answered: time.Now().UTC(), Began: e.Began.UTC(), Ended: e.Ended.UTC(), ErasedTo: e.ErasedTo, Aside: e.Aside,
		}
		row.Why = remains(row, e.Out)
		row.Clean = row.Why == ""
		rows = append(rows, row)
	}
	return rows
}

// remains returns why erased data may be on the disk of a node that has answered, or "".
func remains(r receipt.Replica, out bool) string {
	switch {
	case out:
		return "the replica is out of service and makes no rounds"
	case len(r.Aside) > 0:
		return "an older state of the replica was set aside: " + r.Aside[0]
	case r.Ended.IsZero():
		return "no round of erasure has ended since the node's start"
	case r.ErasedTo < r.Needed:
		return fmt.Sprintf("erased up to index %d, needed %d", r.ErasedTo, r.Needed)
	default:
		return ""
	}
}

// backups lists the backups that may hold the subjects.
func (p Receipts) backups(ctx context.Context, r *receipt.Receipt, more []string) error {
	folders := slices.Concat(r.Folders, more)
	if to := p.cfg.Backups.Scheduled(); to != "" {
		folders = append(folders, to)
	}
	slices.Sort(folders)
	if r.Folders = slices.Compact(folders); len(r.Folders) > foldersMax {
		return router.Errorf(router.InvalidRequest, "", "a receipt has at most %d folders of backups", foldersMax)
	}
	r.Backups = nil
	for _, folder := range r.Folders {
		found, err := p.cfg.Backups.Holding(ctx, folder, r.Since())
		if err != nil {
			return router.Errorf(router.InvalidRequest, "", "list the backups of %s: %v", folder, err)
		}
		r.Backups = append(r.Backups, found...)
	}
	if n := len(r.Backups); n > 0 {
		r.Missing = append(r.Missing, fmt.Sprintf("%d backups may hold the subjects", n))
	}
	return nil
}
