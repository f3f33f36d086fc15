package backup

import (
	"cmp"
	"fmt"
	"math"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/raftfsm/shardfsm"
	"facet/router"
	"facet/shard/job"
)

// itemsOf names the items of one kind of a gallery.
type itemsOf struct {
	gallery id.Gallery
	kind    job.Kind
}

// item loads two different subjects, or a case, into the home of their gallery. An interrupted restoration has
// loaded the same items into the same places.
func (l *loader) item(p *job.CopiedItem) error {
	if !l.want[p.Gallery] {
		return nil
	}
	of := itemsOf{p.Gallery, cmp.Or(p.Kind, job.Different)}
	for _, c := range l.records {
		if c.Gallery == nil || c.Gallery.ID != p.Gallery || c.Gallery.Generation != p.Generation {
			continue
		}
		name := router.ItemsName(*c.Gallery, of.kind, metafsm.ShardsOf(c.Gallery.ID, c.Gallery.Shards, l.shards)[0])
		put := shardfsm.PutItem{
			Name: name, Kind: p.Kind, Index: l.items[of], New: p.Sealed, Time: l.began,
			Share: shardfsm.JobShare{Tenant: c.Gallery.Tenant, Jobs: math.MaxUint32, Items: math.MaxUint32},
		}
		l.items[of]++
		raw, err := l.target.Propose(l.ctx, name.Batch.Shard(), shardfsm.PutItemOp.Encode(put))
		if err != nil {
			return err
		}
		a, err := shardfsm.PutItemOp.Answer(raw)
		if err == nil && a.Status != shardfsm.Done && a.Status != shardfsm.Conflict {
			err = fmt.Errorf("the pairs of different subjects, or cases, of gallery %s do not fit: %s", p.Gallery, a.Status)
		}
		return err
	}
	return nil
}
