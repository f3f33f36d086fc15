package backup

import (
	"context"
	"fmt"
	"strings"
	"time"

	"facet/internal/id"
	"facet/node/bucket"
	"facet/router"
)

// end is the end of a backup or a restoration, for the cluster's audit log. The node whose job it was records it, so a
// job that ends with its node's process has no record.
type end struct {
	operation, folder, name, gallery string
	began                            time.Time
	events                           uint64
	former                           string // of a restoration: wire.Restored.Former
}

// recordedBackup returns a job that does what f does, and records its end.
func recordedBackup(s *Service, folder, name string, f func(context.Context, progress) (Manifest, error)) func(context.Context, progress) (Manifest, error) {
	return func(ctx context.Context, p progress) (Manifest, error) {
		e := end{operation: "make a backup", folder: folder, name: name, began: time.Now()}
		m, err := f(ctx, p)
		e.events = m.Active()
		s.record(e, err)
		return m, err
	}
}

// record records the end of a job that ended with an error, or nil.
func (s *Service) record(e end, err error) {
	outcome, why := "done", ""
	switch {
	case err == nil:
		why = fmt.Sprint(", ", e.events, " events")
	case s.ctx.Err() != nil:
		outcome, why = "given up", ": the node stops"
	default:
		outcome, why = "failed", ": "+err.Error()
	}
	what := strings.Join(strings.Fields(fmt.Sprint(e.name, " ", e.gallery, " in ", bucket.WithoutSecrets(e.folder))), " ")
	s.cfg.Acted(router.Act{
		Log: id.ClusterLog, Operation: e.operation, Former: e.former,
		Reason: fmt.Sprintf("%s: %s, begun %s, by node %s%s", outcome, what, e.began.UTC().Format(time.RFC3339), s.cfg.Name, why),
	})
}
