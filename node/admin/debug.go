package admin

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"net/url"
	"runtime"
	"strconv"
)

const (
	// profileSecondsMax is the longest profile.
	profileSecondsMax = 60
	// blockRate is the time of waiting, in nanoseconds, for each sample of the profile block.
	// mutexFraction is the number of waits for a lock for each sample of the profile mutex.
	blockRate, mutexFraction = 10_000, 10
)

// profileSeconds has the profiles that take time, each with the time when the caller gives none.
// The others are taken at once.
var profileSeconds = map[string]int{"profile": 30, "trace": 1, "block": 10, "mutex": 10}

// profileHandlers has the handlers of all profiles.
var profileHandlers = map[string]http.Handler{
	"profile": http.HandlerFunc(pprof.Profile), "trace": http.HandlerFunc(pprof.Trace),
	"block": sampled(pprof.Handler("block")), "mutex": sampled(pprof.Handler("mutex")),
	"allocs": pprof.Handler("allocs"), "goroutine": pprof.Handler("goroutine"), "heap": pprof.Handler("heap"),
	"threadcreate": pprof.Handler("threadcreate"),
}

// sampled returns a handler that records waits of goroutines while next runs. They cost nothing
// at other times.
func sampled(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		runtime.SetBlockProfileRate(blockRate)
		runtime.SetMutexProfileFraction(mutexFraction)
		defer runtime.SetBlockProfileRate(0)
		defer runtime.SetMutexProfileFraction(0)
		next.ServeHTTP(w, r)
	})
}

// serveProfile takes a profile of this process for "go tool pprof", one at a time.
func (p *Port) serveProfile(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	handler, ok := profileHandlers[name]
	if !ok {
		refuse(w, http.StatusNotFound, fmt.Sprintf("there is no profile %.40q", name))
		return
	}
	query, seconds, err := profileQuery(name, r.URL.Query())
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if !p.profiling.TryLock() {
		refuse(w, http.StatusConflict, "this node takes a profile already: try again when it is done")
		return
	}
	defer p.profiling.Unlock()
	p.cfg.Log.InfoContext(r.Context(), "a profile is taken", "profile", name, "seconds", seconds)
	bare := r.Clone(r.Context())
	bare.URL.RawQuery = query.Encode()
	handler.ServeHTTP(w, bare)
}

// profileQuery returns the checked parameters of a profile: seconds, and debug=1 for text. It
// refuses debug=2, the form with the arguments of all calls, because these may be bytes of keys
// and templates.
func profileQuery(name string, asked url.Values) (query url.Values, seconds int, err error) {
	query = url.Values{}
	if debug := asked.Get("debug"); debug == "1" {
		query.Set("debug", debug)
	} else if debug != "" && debug != "0" {
		return nil, 0, errors.New("debug is 0 or 1: other forms would show arguments of calls")
	}
	seconds = profileSeconds[name]
	if text := asked.Get("seconds"); text != "" {
		if seconds, err = strconv.Atoi(text); err != nil || seconds < 1 || seconds > profileSecondsMax {
			return nil, 0, fmt.Errorf("seconds is a number from 1 to %d", profileSecondsMax)
		}
	}
	if seconds > 0 {
		query.Set("seconds", strconv.Itoa(seconds))
	}
	return query, seconds, nil
}

// serveLog answers with the last lines of the log.
func (p *Port) serveLog(w http.ResponseWriter, _ *http.Request) {
	if p.cfg.RecentLog == nil {
		refuse(w, http.StatusNotFound, "this node keeps no lines of its log")
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write(p.cfg.RecentLog()) // an error means that the caller has gone
}

// serveSettings answers with the settings.
func (p *Port) serveSettings(w http.ResponseWriter, _ *http.Request) {
	if p.cfg.Settings == nil {
		refuse(w, http.StatusNotFound, "this node was started without settings")
		return
	}
	settings, err := p.cfg.Settings()
	if err != nil {
		p.explain(w, "list the settings", err)
		return
	}
	answer(w, http.StatusOK, settings)
}
