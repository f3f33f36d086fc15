package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"facet/node/nodetest"
)

// listed is an entry of the subject list.
type listed struct{ ID, EventID, Status, LastUpdated string }

// run reads the list by cursors, each page through another node. Before each page
// between is called.
func (w *world) run(target string, between func(page int)) (shown []listed, total int) {
	w.t.Helper()
	next := ""
	for page := 0; ; page++ {
		between(page)
		var answer struct {
			Subjects []listed
			Total    int
			Next     string
		}
		a := w.insist(page, http.MethodGet, target+next, nil)
		if err := json.Unmarshal(a.Body, &answer); err != nil || a.Status != http.StatusOK {
			w.t.Fatalf("page %d: %d %s", page, a.Status, a.Body)
		}
		shown, total = append(shown, answer.Subjects...), answer.Total
		if answer.Next == "" {
			return shown, total
		}
		if page > 1000 {
			w.t.Fatal("the run does not end")
		}
		next = "&after=" + answer.Next
	}
}

// A run of cursors through all nodes shows each entry that stays as it is exactly once,
// and no entry twice, while others are registered, updated and unregistered, and while
// one node after the other, with its leaderships, is cut off.
func TestCursorRunSurvivesLostLeader(t *testing.T) {
	nodetest.Virtual(t, func(t *testing.T) {
		w := newWorldOf(t, nodetest.Options{}, 200_000) // on four shards
		var subjects []string
		for n := range 120 {
			var s struct{ ID string }
			w.insist(n, http.MethodPost, "/v1.1/subjects", face(fmt.Sprint("person ", n))).Decode(t, &s)
			subjects = append(subjects, s.ID)
		}
		w.waitLevel()
		// Persons 80 to 119 are changed meanwhile; the others stay.
		stay, restless := map[string]bool{}, []string{}
		for n, subject := range subjects {
			if n < 80 {
				stay[subject] = true
			} else {
				restless = append(restless, subject)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		var writers sync.WaitGroup
		writers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				w.insist(n, http.MethodPost, "/v1.1/subjects", face(fmt.Sprint("newcomer ", n)))
				time.Sleep(300 * time.Millisecond)
			}
		})
		writers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				target := "/v1.1/subjects/" + restless[n%len(restless)]
				if n >= 80 && n < 120 {
					w.insist(n, http.MethodDelete, target, nil)
				} else {
					w.insist(n, http.MethodPut, target, face(fmt.Sprint("other ", n)))
				}
				time.Sleep(200 * time.Millisecond)
			}
		})
		for round, dir := range []string{"asc", "desc", "asc", "desc"} {
			victim := round % 3
			shown, total := w.run("/v1.1/subjects?length=9&dir="+dir, func(page int) {
				switch page {
				case 2:
					w.cut(victim)
				case 7:
					w.net.Heal()
				}
				time.Sleep(100 * time.Millisecond)
			})
			w.net.Heal()
			seen, kept := map[listed]int{}, map[string]int{}
			for _, entry := range shown {
				if seen[entry]++; seen[entry] > 1 {
					t.Errorf("round %d, %s: %v is shown twice", round, dir, entry)
				}
				if stay[entry.ID] {
					kept[entry.ID]++
				}
			}
			for subject := range stay {
				if kept[subject] != 1 {
					t.Errorf("round %d, %s: %s stayed and was shown %d times", round, dir, subject, kept[subject])
				}
			}
			t.Logf("round %d, %s: %d entries shown of %d", round, dir, len(shown), total)
			time.Sleep(10 * time.Second)
		}
		stop()
		writers.Wait()
	})
}
