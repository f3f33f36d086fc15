package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"facet/internal/id"
)

// Work counts the work of a node. Its methods are quick and safe for concurrent
// use.
type Work struct {
	requests  *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	refused   *prometheus.CounterVec
	read      prometheus.Counter
	sent      prometheus.Counter
	images    *prometheus.CounterVec
	imageTime prometheus.Observer
	stages    *prometheus.HistogramVec
	shardTime prometheus.Observer
	rows      prometheus.Counter
	hedges    prometheus.Counter
	won       prometheus.Counter
	proposals *prometheus.HistogramVec
	failed    *prometheus.CounterVec
	files     *prometheus.CounterVec
}

// NewWork returns a Work whose counters are in registry. Refusals, by these reasons, and outcomes
// start at 0: Prometheus sees no increase in a counter that appears with its first event.
func NewWork(registry prometheus.Registerer, refusals []string) *Work {
	imageTime, shardTime := ImageSeconds.histogramVec(), ShardSearchSeconds.histogramVec()
	read, sent, rows := RequestBytes.counterVec(), AnswerBytes.counterVec(), SearchRows.counterVec()
	hedges, won := ReadHedges.counterVec(), HedgesWon.counterVec()
	w := &Work{
		requests: Requests.counterVec(), seconds: RequestSeconds.histogramVec(), refused: RequestsRefused.counterVec(),
		read: read.WithLabelValues(), sent: sent.WithLabelValues(),
		images: Images.counterVec(), imageTime: imageTime.WithLabelValues(),
		stages: SearchSeconds.histogramVec(), shardTime: shardTime.WithLabelValues(), rows: rows.WithLabelValues(),
		hedges: hedges.WithLabelValues(), won: won.WithLabelValues(),
		proposals: ProposeSeconds.histogramVec(), failed: ProposeFailed.counterVec(), files: JobFiles.counterVec(),
	}
	registry.MustRegister(w.requests, w.seconds, w.refused, read, sent, w.images, imageTime, w.stages, shardTime, rows, hedges, won, w.proposals, w.failed, w.files)
	for _, reason := range refusals {
		w.refused.WithLabelValues(reason)
	}
	for _, outcome := range []string{ImageOK, ImageBad, ImageBusy, ImageFault} {
		w.images.WithLabelValues(outcome)
	}
	for _, outcome := range []string{FileRegistered, FileRefused} {
		w.files.WithLabelValues(outcome)
	}
	return w
}

// Request counts an answered request. Operation is empty for an unknown operation,
// Refusal for a request that was not refused.
func (w *Work) Request(r Request) {
	if r.Operation == "" {
		r.Operation = "none"
	}
	w.requests.WithLabelValues(r.Operation, strconv.Itoa(r.Status)).Inc()
	w.seconds.WithLabelValues(r.Operation).Observe(r.Took.Seconds())
	w.read.Add(float64(r.BodyBytes))
	w.sent.Add(float64(r.AnswerBytes))
	if r.Refusal != "" {
		w.refused.WithLabelValues(r.Refusal).Inc()
	}
}

// Request describes an answered request. Operation and Refusal have few possible
// values.
type Request struct {
	Operation              string
	Status                 int
	Took                   time.Duration
	BodyBytes, AnswerBytes int
	Refusal                string
}

// Image counts an image that the engine worked on or refused.
func (w *Work) Image(outcome string, took time.Duration) {
	w.images.WithLabelValues(outcome).Inc()
	if outcome != ImageBusy {
		w.imageTime.Observe(took.Seconds())
	}
}

// Outcomes of an image.
const (
	ImageOK    = "ok"
	ImageBad   = "bad"
	ImageBusy  = "busy"
	ImageFault = "fault"
)

// Searched records the stages of a search (router.Meter).
func (w *Work) Searched(extract, shards, merge time.Duration) {
	w.stages.WithLabelValues("extract").Observe(extract.Seconds())
	w.stages.WithLabelValues("shards").Observe(shards.Seconds())
	w.stages.WithLabelValues("merge").Observe(merge.Seconds())
}

// SearchedShard records one shard's part of a search (router.Meter).
func (w *Work) SearchedShard(rows int, took time.Duration) {
	w.rows.Add(float64(rows))
	w.shardTime.Observe(took.Seconds())
}

// Hedged counts a read that was asked at a second replica (calls.Meter).
func (w *Work) Hedged() { w.hedges.Inc() }

// HedgeWon counts a hedge that was answered first (calls.Meter).
func (w *Work) HedgeWon() { w.won.Inc() }

// Proposed returns a function that records the proposals of a group
// (raftfsm.Config.Proposed).
func (w *Work) Proposed(group id.Shard) func(took time.Duration, err error) {
	label := strconv.Itoa(int(group))
	seconds, failed := w.proposals.WithLabelValues(label), w.failed.WithLabelValues(label)
	return func(took time.Duration, err error) {
		if err != nil {
			failed.Inc()
			return
		}
		seconds.Observe(took.Seconds())
	}
}

// Dropped forgets a group of which this node has no replica any more.
func (w *Work) Dropped(group id.Shard) {
	label := strconv.Itoa(int(group))
	w.proposals.DeleteLabelValues(label)
	w.failed.DeleteLabelValues(label)
}

// Outcomes of a file of a job.
const (
	FileRegistered = "registered"
	FileRefused    = "refused" // its record says why
)

// File counts a file of a job (jobs.Config.Done).
func (w *Work) File(registered bool) {
	outcome := FileRefused
	if registered {
		outcome = FileRegistered
	}
	w.files.WithLabelValues(outcome).Inc()
}
