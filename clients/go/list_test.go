package client_test

import (
	"errors"
	"net/http"
	"testing"

	"facet.internal/client"
)

// The iterator follows the cursors. It returns an error, and no shorter list, when the
// service has none.
func TestAllSubjectsFollowsCursors(t *testing.T) {
	t.Parallel()
	page := func(id, rest string) func(w http.ResponseWriter) {
		return say(200, `{"subjects":[{"id":"`+id+`","eventId":"e","status":"A","lastUpdated":"2026-01-02T03:04:06.678+00:00"}],"total":3`+rest+`}`)
	}
	list := func(c *client.Client) (ids string, err error) {
		for e, err := range c.AllSubjects(t.Context(), client.Descending) {
			if err != nil {
				return ids, err
			}
			ids += e.ID
		}
		return ids, nil
	}
	s, c := play(t, client.Config{}, page("a", `,"next":"n1"`), page("b", `,"next":"n_-2"`), page("c", ""))
	if got, err := list(c); got != "abc" || err != nil {
		t.Errorf("got %s, %v", got, err)
	}
	want := []string{
		"/v1.1/subjects?dir=desc&length=1000", "/v1.1/subjects?after=n1&length=1000", "/v1.1/subjects?after=n_-2&length=1000",
	}
	for i, r := range s.requests() {
		if r.target != want[i] {
			t.Errorf("request %d: %s, want %s", i, r.target, want[i])
		}
	}
	_, c = play(t, client.Config{}, page("a", ""))
	if got, err := list(c); got != "a" || !errors.Is(err, client.ErrNoCursor) {
		t.Errorf("without a cursor: got %s, %v", got, err)
	}
}
