package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"facet/engine/accuracy"
	"facet/internal/must"
)

func TestPacksSideBySide(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	save := func(name string, d *Document) string {
		t.Helper()
		text, err := json.Marshal(d)
		must.Do(t, err)
		file := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(file, text, 0o600))
		return file
	}
	measured := func(pack string, eer float64, photos int) *Document {
		return &Document{
			Pack: Pack{Name: pack, Dim: 128}, Data: Data{Name: "members", Persons: 9, Photos: photos},
			All: &accuracy.Verification{
				EER: accuracy.Rate{Value: eer},
				At:  []accuracy.AtThreshold{{Threshold: 7000, FMR: accuracy.Share(1, 1000), FNMR: accuracy.Share(int64(1000*eer), 1000)}},
				DET: []accuracy.Point{
					{Threshold: 0, FMR: 1}, {Threshold: 5000, FMR: .01, FNMR: eer}, {Threshold: 9000, FMR: .0001, FNMR: 5 * eer}, {Threshold: 10_000, FNMR: 1},
				},
			},
		}
	}
	first, second := save("a.json", measured("a", .01, 20)), save("b.json", measured("b <&", .02, 20))
	var out bytes.Buffer
	plot := filepath.Join(dir, "packs.svg")
	must.Do(t, Compare(&out, []string{first, second}, plot))
	for _, part := range []string{"a  ", "b <&", "1.00 %", "2.00 %", "FNMR at 7000", "members: 20 photographs of 9 persons"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the output has no %q:\n%s", part, &out)
		}
	}
	picture, err := os.ReadFile(plot)
	if err != nil || !strings.Contains(string(picture), "b &lt;&amp;") || strings.Count(string(picture), blue) < 2 || !strings.Contains(string(picture), orange) {
		t.Errorf("%v, picture:\n%s", err, picture)
	}
	few := save("few.json", measured("c", .01, 19))
	empty := save("empty.json", &Document{})
	for message, files := range map[string][]string{
		"a.json measures 20 photographs of 9 persons (members), and few.json 19 of 9": {first, few},
		"empty.json: it has no measurement of every pair":                             {empty},
		"none.json: read measurements":                                                {filepath.Join(dir, "none.json")},
		"6 files, the most is 5":                                                      {first, first, first, first, first, first},
	} {
		if err := Compare(&out, files, ""); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%v, want %s", err, message)
		}
	}
}
