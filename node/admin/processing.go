package admin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"facet/internal/id"
	"facet/node/wire"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/routing"
)

// processing returns the record of processing of a tenant.
func processing(ctx context.Context, p *Port, name string) (none wire.Processing, err error) {
	all, err := p.cfg.Router.Tenants(ctx)
	if err != nil {
		return none, err
	}
	i := slices.IndexFunc(all, func(t router.TenantUse) bool { return t.Name == name })
	if i < 0 {
		return none, router.Errorf(router.NotFound, "", "there is no tenant %q", name)
	}
	t := wireTenant(all[i])
	cluster, _ := p.cfg.Replicas.Meta().Cluster()
	out := wire.Processing{
		Made: time.Now().UTC().Truncate(time.Second), Cluster: cluster.ID, Tenant: t.Tenant, Name: t.Name, State: t.State,
		Pack: p.cfg.Pack, Audit: t.Audit, Backups: schedule(p.cfg.Backups), Nodes: []wire.ProcessingNode{},
	}
	if out.Galleries, err = processed(ctx, p.cfg.Router, t.Tenant); err != nil {
		return none, err
	}
	keys, err := p.keys(ctx, name)
	if err != nil {
		return none, err
	}
	out.Keys = slices.DeleteFunc(keys, func(k wire.Key) bool { return k.State != wire.KeyLive })
	for _, n := range p.cfg.Replicas.Meta().Nodes() {
		if n.State != metafsm.NodeRemoved {
			out.Nodes = append(out.Nodes, wire.ProcessingNode{Name: n.Name, Zone: n.Zone})
		}
	}
	out.ToDo = toDo(out.Galleries)
	return out, nil
}

// schedule returns the schedule of the backups, or nil.
func schedule(b Backups) *wire.BackupSchedule {
	to := b.Scheduled()
	if to == "" {
		return nil
	}
	every, keep := b.Plan()
	return &wire.BackupSchedule{Folder: to, EverySeconds: int64(every / time.Second), Keep: keep}
}

// processed returns the galleries of a tenant with their applications.
func processed(ctx context.Context, r *routing.Router, tenant id.Tenant) ([]wire.ProcessedGallery, error) {
	galleries, err := r.Galleries(ctx, tenant)
	if err != nil {
		return nil, err
	}
	applications, err := r.Applications(ctx, tenant)
	if err != nil {
		return nil, err
	}
	of := map[id.Gallery][]wire.ProcessedApplication{}
	for _, a := range applications {
		s := a.Reviewed()
		of[a.Gallery] = append(of[a.Gallery], wire.ProcessedApplication{
			Name: s.Name, VerifyThreshold: s.VerifyThreshold,
			ReviewThreshold: s.ReviewThreshold, ReviewVerdicts: s.ReviewVerdicts, ReviewDays: s.ReviewDays,
		})
	}
	list := make([]wire.ProcessedGallery, 0, len(galleries))
	for _, g := range galleries {
		list = append(list, wire.ProcessedGallery{
			Gallery: g.ID, Name: g.Name, Description: g.Description, Purpose: g.Purpose, LegalGround: g.LegalGround, Recipients: g.Recipients,
			Faces: g.Count, Size: int(g.Size), RetentionDays: int(g.RetentionDays), PhotoLink: g.PhotoLink, Applications: of[g.ID],
		})
	}
	return list, nil
}

// toDo says which galleries lack a purpose or a legal ground.
func toDo(galleries []wire.ProcessedGallery) []string {
	list := []string{}
	for _, g := range galleries {
		if g.Purpose == "" {
			list = append(list, fmt.Sprintf("the gallery %q has no purpose: facet gallery update %q --purpose TEXT", g.Name, g.Name))
		}
		if g.LegalGround == "" {
			list = append(list, fmt.Sprintf("the gallery %q has no legal ground: facet gallery update %q --legal-ground TEXT", g.Name, g.Name))
		}
	}
	return list
}
