package fair

import "sync"

// Greed limits what one tenant may take of a Pool: at most Greed times as much as is
// free (dynamic thresholds: Choudhury and Hahne 1998). A lone tenant gets four fifths
// of the pool, two tenants get four ninths each. n tenants get 1/(n + 1/4) each, and a
// quarter of such a share stays free. So a new tenant gets some at once, and no tenant
// has to return anything.
const Greed = 4

// Pool is an amount of some resource that tenants, or others of one kind, take and return. The zero
// tenant is treated like any other. It is safe for concurrent use.
type Pool[W comparable] struct {
	max int64

	mu   sync.Mutex // guards used, most and of; held for arithmetic only
	used int64
	most int64       // highest value that used ever had
	of   map[W]int64 // by tenant, without zeroes
}

// NewPool returns a pool of max(1, most) units.
func NewPool[W comparable](most int64) *Pool[W] { return &Pool[W]{max: most, of: make(map[W]int64)} }

// Take reserves n units for the tenant and returns true. It takes nothing and returns
// false when n units are not left or the tenant has its share.
func (p *Pool[W]) Take(who W, n int64) bool {
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

// Room reports whether Take would succeed.
func (p *Pool[W]) Room(who W, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.allows(who, n)
}

// allows does the work of Room. A tenant that holds nothing may take all that is
// left: a small pool must not refuse everybody. The caller holds mu.
func (p *Pool[W]) allows(who W, n int64) bool {
	free := p.max - p.used
	if n > free {
		return false
	}
	held := p.of[who]
	return held == 0 || held+n <= Greed*(free-n)
}

// Left returns the most units that Take would give now to a tenant that holds some.
func (p *Pool[W]) Left(who W) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, (Greed*(p.max-p.used)-p.of[who])/(Greed+1))
}

// Give returns n units of the tenant to the pool.
func (p *Pool[W]) Give(who W, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= n
	if p.of[who] -= n; p.of[who] == 0 {
		delete(p.of, who)
	}
}

// Used returns how much tenants hold now.
func (p *Pool[W]) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// Most returns the most that tenants ever held at once.
func (p *Pool[W]) Most() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most
}

// Max returns the size of the pool.
func (p *Pool[W]) Max() int64 { return p.max }
