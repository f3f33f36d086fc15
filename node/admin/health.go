package admin

import (
	"fmt"
	"net/http"
	"time"
)

// liveStall is for how long a disk may owe an answer before the node is no longer
// called alive. It is beyond the time after which a group passes its leadership on,
// and before the one after which it is given up (raftfsm.Timing).
const liveStall = 15 * time.Second

// living says what makes this process worth a restart, or nil: it can't go on, or a
// group's disk hangs.
func (p *Port) living() error {
	if err := p.cfg.Err(); err != nil {
		return err
	}
	for _, number := range p.cfg.Replicas.All() {
		group, ok := p.cfg.Replicas.Group(number)
		if !ok {
			continue
		}
		if stalled := group.Status().Stalled; stalled > liveStall {
			return fmt.Errorf("the disk has owed group %d an answer for %d seconds", number, int(stalled.Seconds()))
		}
	}
	return nil
}

// serveLive answers whether the process lives: whoever starts it should start it
// anew when it does not.
func (p *Port) serveLive(w http.ResponseWriter, _ *http.Request) { answerHealth(w, p.living()) }

// serveReady answers whether the node serves: requests should go to others when it
// does not, and the answer says why.
func (p *Port) serveReady(w http.ResponseWriter, _ *http.Request) { answerHealth(w, p.cfg.Serving()) }

func answerHealth(w http.ResponseWriter, err error) {
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	answer(w, http.StatusOK, map[string]string{"status": "OK"})
}
