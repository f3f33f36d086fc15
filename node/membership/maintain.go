package membership

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// maintain calls missing nodes, announces this node's changes and saves the
// addresses. It ends with ctx.
func (m *Membership) maintain() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	pause := rejoinSoon // grows: at first all nodes may be starting
	var before map[string]bool
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-m.announce:
			if err := m.list.UpdateNode(announceTimeout); err != nil {
				m.log.Debug("announce metadata", "err", err)
			}
		case <-timer.C:
			strangers := m.rejoin()
			next := pause
			pause = min(2*pause, rejoinInterval)
			for address := range strangers {
				if !before[address] {
					next = rejoinSoon
				}
			}
			before = strangers
			m.book.save(m.addresses())
			timer.Reset(next)
		}
	}
}

// rejoin calls some of the missing nodes. It returns the addresses that answered
// but still belong to no member, which has one of three causes:
//
//   - The other node has just refuted its own death and becomes a member at the
//     next call.
//   - The address is a second name of a seed.
//   - The other node belongs to another cluster.
func (m *Membership) rejoin() map[string]bool {
	var wg sync.WaitGroup
	var mu sync.Mutex
	reached := make(map[string]bool)
	width := make(chan struct{}, rejoinWidth)
	for _, address := range m.missing() {
		width <- struct{}{}
		wg.Go(func() {
			defer func() { <-width }()
			if _, err := m.list.Join([]string{seedName(address)}); err != nil {
				m.log.Debug("call node", "address", address, "err", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			reached[address] = true
		})
	}
	wg.Wait()
	for _, address := range m.addresses() {
		delete(reached, address)
	}
	return reached
}

// missing returns addresses of seeds and of known members at which no member is
// present. It returns at most rejoinMax of them, in random order, so that in time
// each address is called.
func (m *Membership) missing() []string {
	there := map[string]bool{m.Self().Address: true}
	for _, address := range m.addresses() {
		there[address] = true
	}
	var out []string
	for _, address := range slices.Concat(m.seeds, m.book.addresses()) {
		if !there[address] {
			there[address] = true
			out = append(out, address)
		}
	}
	rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:min(len(out), rejoinMax)]
}
