package admin

import (
	"fmt"
	"net/http"
	"time"
)

// liveStall is how long a disk write may hang before the node counts as dead. The group
// hands over its leadership earlier and stops itself later (raftfsm.Timing).
const liveStall = 15 * time.Second

// living returns why this process should be restarted, or nil: the node has failed, or the
// disk of a group hangs.
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

// serveLive reports whether the process is alive. Its supervisor restarts it if not.
func (p *Port) serveLive(w http.ResponseWriter, _ *http.Request) { answerHealth(w, p.living()) }

// serveReady reports whether the node serves, and why not. Requests then go to other nodes.
func (p *Port) serveReady(w http.ResponseWriter, _ *http.Request) { answerHealth(w, p.cfg.Serving()) }

func answerHealth(w http.ResponseWriter, err error) {
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	answer(w, http.StatusOK, map[string]string{"status": "OK"})
}
