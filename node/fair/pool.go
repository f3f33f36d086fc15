package fair

import (
	"sync"

	"facet/internal/id"
)

// greed bounds what one tenant may take of a Pool by what is free (dynamic thresholds:
// Choudhury and Hahne 1998): at most greed times as much. A tenant alone gets four
// fifths, two get four ninths each, n get 1/(n + 1/4) and leave a quarter of that free,
// so whoever comes next has some at once: nothing has to be taken back from anybody.
const greed = 4

// Pool is an amount of something that tenants take and give back. The zero tenant is
// one like the others. It is safe for concurrent use.
type Pool struct {
	max int64

	mu   sync.Mutex // guards what follows; held for arithmetic only
	used int64
	most int64               // of used, ever
	of   map[id.Tenant]int64 // what each holds, without those that hold nothing
}

// NewPool makes a pool of this much, at least 1.
func NewPool(most int64) *Pool { return &Pool{max: most, of: make(map[id.Tenant]int64)} }

// Take gives n to the tenant, or nothing and false: there is not as much left, or the
// tenant has its share.
func (p *Pool) Take(who id.Tenant, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.allows(who, n) {
		return false
	}
	if n > 0 {
		p.used += n
		p.most = max(p.most, p.used)
		p.of[who] += n
	}
	return true
}

// Room tells whether Take would give n.
func (p *Pool) Room(who id.Tenant, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.allows(who, n)
}

// allows is Room; the caller holds mu. Who has nothing yet may take what there is: a
// small pool must not refuse everybody.
func (p *Pool) allows(who id.Tenant, n int64) bool {
	free := p.max - p.used
	if n > free {
		return false
	}
	held := p.of[who]
	return held == 0 || held+n <= greed*(free-n)
}

// Give takes n back from the tenant, who has it.
func (p *Pool) Give(who id.Tenant, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= n
	if p.of[who] -= n; p.of[who] == 0 {
		delete(p.of, who)
	}
}

// Used gives what tenants hold now.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// Most gives the most that tenants ever held at once.
func (p *Pool) Most() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most
}

// Max gives what there is.
func (p *Pool) Max() int64 { return p.max }
