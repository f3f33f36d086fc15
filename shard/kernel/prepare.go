package kernel

import "fmt"

// Prepared is an encoded template, ready for AddPrepared. Encoding takes several times as long as
// adding, and need not wait for the writer's turn.
type Prepared struct {
	template []float32
	enc      *encoder // has the codes
}

// Prepare encodes a copy of a template for m into p, whose memory it reuses. Goroutines may call it
// together, each with its own p. Errors wrap ErrTemplate.
func (m *Matrix) Prepare(p *Prepared, template []float32) error {
	if len(template) != m.shape.dim {
		return m.shape.check(template)
	}
	if p.enc == nil || p.enc.coding != m.coding {
		p.enc = newEncoder(&m.shape, m.coding)
	}
	if !p.enc.encode(template) {
		p.template = p.template[:0]
		return m.shape.check(template)
	}
	p.template = append(p.template[:0], template...)
	return nil
}

// Clear zeroes the template and its codes.
func (p *Prepared) Clear() {
	clear(p.template)
	if p.enc != nil {
		p.enc.clear()
	}
	p.template = p.template[:0]
}

// AddPrepared is Add for a template that was prepared for m, or for a matrix of its dimension and
// arena.
func (m *Matrix) AddPrepared(owner uint32, p *Prepared) (slot int, err error) {
	if p.enc == nil || p.enc.coding != m.coding || len(p.template) != m.shape.dim {
		return 0, fmt.Errorf("%w: it was prepared for another matrix", ErrTemplate)
	}
	slot = m.slots
	if n := len(m.free); n > 0 {
		slot = m.free[n-1]
	}
	c, at, err := m.chunkOf(slot)
	if err != nil {
		return 0, err
	}
	if n := len(m.free); n > 0 {
		m.free = m.free[:n-1]
		c.free--
	} else {
		m.slots++
	}
	copy(c.vector(&m.shape, at), p.template) // a cold chunk has none
	if !c.flat {
		bit := uint64(1) << (at % blockSlots)
		if p.enc.bounded {
			c.irregular[at/blockSlots].And(^bit)
		} else {
			c.irregular[at/blockSlots].Or(bit)
			c.odd.Store(true)
		}
		c.write(&m.shape, at, &p.enc.coded)
	}
	c.tags.set(at, len(c.live), m.tags(owner))
	c.owners[at].Store(owner)
	c.live[at/blockSlots].Or(1 << (at % blockSlots))
	return slot, nil
}
