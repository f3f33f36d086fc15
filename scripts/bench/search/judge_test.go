package search

import (
	"testing"
)

func TestGoalIsJudgedByWorstFigure(t *testing.T) {
	t.Parallel()
	of := func(kind, least string, limit, batch int, ratio float64) figure {
		return figure{set: "easy", peer: "flat", kind: kind, least: least, dim: 128, rows: million, ask: ask{limit: limit, batch: batch}, ratio: ratio}
	}
	v := verdict{missed: 3, figures: []figure{
		of("mated", "≥ .5", 10, 1, 8), of("non-mated", "≥ .5", 10, 1, 7.5),
		of("mated", "≥ .5", 50, 1, 1), of("mated", "≥ .5", 10, 32, 2), of("mated", "none", 10, 32, 21),
	}}
	rows := v.rows()
	if len(rows) != 3 {
		t.Fatalf("got %d goals, want those of two figures and of what is missed: %v", len(rows), rows)
	}
	if rows[0].Value != 7.5 || rows[1].Value != 21 || rows[2].Value != 3 {
		t.Errorf("got %v, %v and %v, want 7.5, 21 and 3", rows[0].Value, rows[1].Value, rows[2].Value)
	}
	v = verdict{family: avx2, figures: []figure{of("mated", "none", 10, 32, 21)}}
	if rows := v.rows(); len(rows) != 2 || rows[0].Goal != 15 {
		t.Errorf("AVX2: got %v, want a goal of 15", rows)
	}
	v = verdict{compared: 10, wrong: 1}
	if rows := v.rows(); len(rows) != 1 || rows[0].Value != 1 {
		t.Errorf("got %v, want one wrong hit", rows)
	}
}
