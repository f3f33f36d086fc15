package lists

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"math"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/cluster"
	"facet/shard"
)

// A cursor names an entry of a gallery's list and the direction of the pages. The
// next page has the entries that follow this place, whether or not the entry is still
// there. So no node remembers anything of a run, and any node continues it.
//
//	0         1           2      10      12         20    36
//	┌─────────┬───────────┬──────┬───────┬──────────┬─────┐
//	│ version │ direction │ time │ shard │ sequence │ MAC │   big-endian, base64url
//	└─────────┴───────────┴──────┴───────┴──────────┴─────┘
//
// The MAC covers the cluster and the gallery with its generation. It refuses damaged
// cursors and those of another list. A cursor gives no rights: the place is looked up
// in the gallery of the caller.
type cursor struct {
	order router.Order
	shard id.Shard
	shard.Position
}

const (
	cursorVersion = 1
	cursorHead    = 20 // bytes before the MAC
	purposeCursor = "cursor"
	// expiryOrder is the direction of pages of what expires, soonest first. The time of their
	// cursors is that of expiry.
	expiryOrder router.Order = 3
)

// after returns the place in the list of shard s after which its entries follow c.
// Entries of one time are in the order of their shards.
func (c *cursor) after(s id.Shard) *shard.Position {
	switch {
	case c == nil:
		return nil
	case s < c.shard:
		return &shard.Position{Time: c.Time, Sequence: math.MaxUint64}
	case s > c.shard:
		return &shard.Position{Time: c.Time}
	default:
		return &shard.Position{Time: c.Time, Sequence: c.Sequence}
	}
}

// text returns the form of c that clients send back.
func (c *cursor) text(of id.Cluster, g metafsm.Gallery) string {
	b := []byte{cursorVersion, byte(c.order)}
	b = binary.BigEndian.AppendUint64(b, uint64(c.Time))
	b = binary.BigEndian.AppendUint16(b, uint16(c.shard))
	b = binary.BigEndian.AppendUint64(b, c.Sequence)
	return base64.RawURLEncoding.EncodeToString(append(b, cluster.MACOfCursor(purposeCursor, of, g, b)...))
}

// readCursor reads a cursor of the list of g.
func readCursor(of id.Cluster, g metafsm.Gallery, text string) (*cursor, bool) {
	b, ok := cluster.OpenCursor(purposeCursor, of, g, text, cursorHead)
	if !ok {
		return nil, false
	}
	c := &cursor{
		order: router.Order(b[1]), shard: id.Shard(binary.BigEndian.Uint16(b[10:])),
		Position: shard.Position{Time: int64(binary.BigEndian.Uint64(b[2:])), Sequence: binary.BigEndian.Uint64(b[12:])},
	}
	return c, b[0] == cursorVersion && (c.order <= router.Descending || c.order == expiryOrder)
}

// from returns the place after which the page starts, or nil for one that starts at
// an index. It sets the order of p.
func (r *ListRequests) from(ctx context.Context, g cluster.Gallery, p *router.Page) (*cursor, error) {
	asked := p.Order
	if p.Order == router.CursorOrder {
		p.Order = router.Ascending
	}
	if p.After == "" {
		return nil, nil
	}
	record, _ := r.cluster.Groups.Meta().Cluster()
	c, ok := readCursor(record.ID, g.Gallery, p.After)
	if !ok || c.order == expiryOrder {
		return nil, router.Errorf(router.InvalidRequest, router.ReasonUnknownCursor, "the cursor in after is not one of this gallery's list; send the next of an earlier page as it came")
	}
	if asked != router.CursorOrder && asked != c.order {
		return nil, router.Errorf(router.InvalidRequest, "", "the cursor in after has the other direction; leave dir out")
	}
	p.Order = c.order
	return c, nil
}

// next returns the cursor that continues a page after its last entry.
func (r *ListRequests) next(g cluster.Gallery, last placed, order router.Order) string {
	record, _ := r.cluster.Groups.Meta().Cluster()
	c := cursor{order, last.shard, shard.Position{Time: last.Updated.UnixMilli(), Sequence: last.sequence}}
	return c.text(record.ID, g.Gallery)
}
