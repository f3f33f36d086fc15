package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"image/jpeg"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	doubtfulPhotos = 70 // more than an application's cases of a minute
	doubtsAtOnce   = 60
	casesPerMinute = 60
)

// doubts floods reviews.
type doubts struct{ *attack }

// door makes an application of a tenant for which another photo of the first person is doubtful.
func (a doubts) door(n *tenant) (key string, err error) {
	var made struct{ APIKey string }
	err = a.must(0, n.admin, http.MethodPost, "/api/applications", "", map[string]any{
		"name": "door", "galleryId": n.gallery.id, galleryField: .45, "verifyThreshold": 9999, "reviewThreshold": 1,
	}, &made)
	return made.APIKey, err
}

// verify makes a doubtful verification and returns its case.
func (a doubts) verify(node int, from address, who credentials, door, subject string, photo []byte) (got answer, caseID string, err error) {
	body := map[string]any{"id": subject, "probe": encoded(photo)}
	got, err = a.send(node, from, a.sign(node, who, http.MethodPost, "/v1.1/face/verify", body, apiKey(door)))
	var text struct{ CaseID string }
	if err == nil && got.status == http.StatusNotFound {
		err = json.Unmarshal([]byte(got.body), &text)
	}
	return got, text.CaseID, err
}

// doubtfulOf returns a photo in doubtfulPhotos qualities, so that each has another template.
func doubtfulOf(photo []byte) (list [][]byte, err error) {
	picture, err := jpeg.Decode(bytes.NewReader(photo))
	if err != nil {
		return nil, err
	}
	for i := range doubtfulPhotos {
		var b bytes.Buffer
		if err := jpeg.Encode(&b, picture, &jpeg.Options{Quality: 100 - i}); err != nil {
			return nil, err
		}
		list = append(list, b.Bytes())
	}
	return list, nil
}

// watch makes doubtful verifications of the victim until stop, and returns their times.
func (a doubts) watch(c *tally, door string, stop <-chan struct{}) (times []time.Duration) {
	for node := 0; ; node = (node + 1) % nodes {
		select {
		case <-stop:
			return times
		case <-time.After(watchPause):
		}
		got, caseID, err := a.verify(node, address{0, 9}, a.victim.only, door, a.victim.subjects[0].ID, a.photos[another])
		if err != nil || caseID == "" { // a home that takes two seconds opens none
			c.got("the victim's doubtful verification at node %d: %s after %v, %v", node, got, got.took, err)
		}
		times = append(times, got.took)
	}
}

// flood sends the thief's doubtful verifications, again and again, with photos that differ. Meanwhile the victim's are
// answered with a case.
func (a doubts) flood(c *tally) error {
	mine, err1 := a.door(a.thief)
	its, err2 := a.door(a.victim)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	var known subject
	if err := a.must(0, a.thief.biometric, http.MethodPost, "/v1.1/subjects", mine, map[string]any{"face": encoded(a.photos[portraits[0]])}, &known); err != nil {
		return err
	}
	photos, err := doubtfulOf(a.photos[another])
	if err != nil {
		return err
	}
	stop := make(chan struct{})
	var times []time.Duration
	var watching sync.WaitGroup
	watching.Go(func() { times = a.watch(c, its, stop) })
	var mu sync.Mutex
	cases, answers := map[string]bool{}, map[int]int{}
	began := time.Now()
	each(3*doubtfulPhotos, doubtsAtOnce, func(i int) {
		c.try()
		got, caseID, err := a.verify(i%nodes, address{5, byte(1 + i%8)}, a.thief.only, mine, known.ID, photos[i%doubtfulPhotos])
		mu.Lock()
		defer mu.Unlock()
		if answers[got.status]++; caseID != "" {
			cases[caseID] = true
		}
		if err != nil {
			c.got("the flood at node %d: %v", i%nodes, err)
		}
	})
	minutes := 1 + int(time.Since(began)/time.Minute)
	close(stop)
	watching.Wait()
	if len(cases) > casesPerMinute*minutes || len(cases) == 0 {
		c.got("%d doubts opened %d cases in %d minutes, want 1 to %d a minute", answers[http.StatusNotFound], len(cases), minutes, casesPerMinute)
	}
	slices.Sort(times)
	c.note("%d of the flood's %d doubts were answered and opened %d cases; the victim's %d: p50 %s, p99 %s", answers[http.StatusNotFound],
		3*doubtfulPhotos, len(cases), len(times), short(at(times, .5)), short(at(times, .99)))
	return nil
}
