package sim

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"facet/engine"
	"facet/node/nodetest"
)

// sleeper is a HashExtractor that takes the time that an image names, like "1s of Ann".
type sleeper struct{ nodetest.HashExtractor }

// Extract waits, then returns the face of image (router.Extractor).
func (s sleeper) Extract(ctx context.Context, image []byte) ([]engine.Face, error) {
	text, _, _ := strings.Cut(string(image), " ")
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(d):
		return s.HashExtractor.Extract(ctx, image)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ExtractLarge does the same (router.Extractor).
func (s sleeper) ExtractLarge(ctx context.Context, image []byte, _ float32) ([]engine.Face, error) {
	return s.Extract(ctx, image)
}

// The answer comes at 30 seconds, whatever the face engine does. Work of less is done.
func TestRequestTimesOutAfter30Seconds(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		w := newWorldOf(t, nodetest.Options{Extractor: sleeper{}, Table: nodetest.Table()}, 100)
		var requests sync.WaitGroup
		for _, op := range []struct {
			target, member string
			status         int // of work that ends in time
		}{
			{"/v1.1/face/extract", "faces", http.StatusOK},
			{"/v1.1/subjects", "face", http.StatusCreated},
			{"/v1.1/face/search", "probe", http.StatusNotFound},
			{"/v1.1/face/verify", "probe", http.StatusNotFound},
			{"/v1/face/extract", "faces", http.StatusOK},
		} {
			f := func(image string, status int, contains string, least, most time.Duration) {
				body := map[string]any{op.member: nodetest.Image(image)}
				if op.target == "/v1.1/face/verify" {
					body["face"] = nodetest.Image("0s of Bob")
				}
				base := w.cluster.Nodes[len(op.member)%3].URL
				start := time.Now()
				r, err := w.client.Sign(base, http.MethodPost, op.target, body)
				if err != nil {
					t.Error(err)
					return
				}
				a, err := w.client.Send(t.Context(), base, r)
				took := time.Since(start)
				if err != nil || a.Status != status || !strings.Contains(string(a.Body), contains) || took < least || took > most {
					t.Errorf("%s, %s: %d %s, %v after %v, want %d from %v to %v", op.target, image, a.Status, a.Body, err, took, status, least, most)
				}
			}
			requests.Go(func() { f("29.5s of "+op.target, op.status, "{", 29500*time.Millisecond, 30*time.Second) })
			requests.Go(func() {
				f("1h of "+op.target, http.StatusInternalServerError, `"errorType":"Timeout"`, 30*time.Second, 30200*time.Millisecond)
			})
		}
		requests.Wait()
	})
}
