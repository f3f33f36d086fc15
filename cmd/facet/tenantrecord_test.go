package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"facet/internal/must"
	"facet/node/wire"
)

// processingExample is a record of processing with long texts.
func processingExample() *wire.Processing {
	long := strings.Repeat("works agreement of the third of May and ", 6)
	ends := time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)
	return &wire.Processing{
		Name: "bank", State: "active", Pack: "sface 1", Audit: wire.Audit{Mode: "strict", Days: 184},
		Galleries: []wire.ProcessedGallery{
			{
				Name: "staff", Purpose: "entry of staff", LegalGround: long, Faces: 3, Size: 20, RetentionDays: 90, PhotoLink: "https://hr.example/{externalId}",
				Applications: []wire.ProcessedApplication{{Name: "door", VerifyThreshold: 7000, ReviewThreshold: 6000, ReviewVerdicts: 2, ReviewDays: 7}},
			},
			{Name: "visitors", Size: 5},
		},
		Keys: []wire.Key{
			{Role: "auditor", KeyTerms: wire.KeyTerms{Holder: strings.Repeat("internal audit ", 9)}},
			{Role: "search-only", KeyTerms: wire.KeyTerms{Holder: "door 3", Galleries: []string{"staff"}, Networks: []string{"10.0.0.0/8"}, Ends: &ends}, Used: ends},
		},
		Backups: &wire.BackupSchedule{Folder: "s3://backups/facet", EverySeconds: 86400, Keep: 30},
		Nodes:   []wire.ProcessingNode{{Name: "n1", Zone: "a"}, {Name: "n2"}},
		ToDo:    []string{`the gallery "visitors" has no purpose: facet gallery update "visitors" --purpose TEXT`},
	}
}

func TestRecordOfProcessingIsForPeople(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	must.Do(t, writeProcessing(&b, processingExample()))
	plain := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{
		`of the tenant "bank"`, "strict: a record of each request is on a majority", "contents are kept for 184 days", "every day; the newest 30 stay", "may be there for 30 days more",
		"n1 (zone a), n2", "GALLERY staff", "purpose entry of staff", "legal ground works agreement", "faces 3 of 20", "kept 90 days after the last update",
		"door: a match from 7000 on; from 6000 on 2 people decide within 7 days", "GALLERY visitors", "purpose NOT STATED", "legal ground NOT STATED", "kept until they are removed",
		"search-only door 3 2030-01-31 2030-01-31 staff, 10.0.0.0/8", "programs that collect the audit log", `TO DO - the gallery "visitors" has no purpose`,
	} {
		if !strings.Contains(plain, want) {
			t.Errorf("the record lacks %q:\n%s", want, b.String())
		}
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 100 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
