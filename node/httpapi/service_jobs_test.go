package httpapi

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"facet/internal/id"
	"facet/router"
)

// memoryJobs contains the jobs of a memory by batch. Its "files" are their own
// names, read like images. A file with "later" in its name is not processed.
type memoryJobs map[id.Batch]*memoryJob

type memoryJob struct {
	gallery id.Gallery
	records []router.BulkRecord
}

// memoryPage is the number of records in a page of memory.
const memoryPage = 2

func (m *memory) BulkRegister(ctx context.Context, b router.BulkRegistration) (id.Batch, error) {
	for _, item := range b.Items {
		if item.Filename == "no store" {
			return id.Batch{}, router.Errorf(router.InvalidRequest, router.ReasonNoStore, "This service has no object store to register from.")
		}
		if strings.Contains(item.Filename, "..") {
			return id.Batch{}, router.Errorf(router.InvalidRequest, "", "The filename leads outside.")
		}
		if _, err := m.live(b.Access, item.Tags); err != nil {
			return id.Batch{}, err
		}
	}
	m.mu.Lock()
	first, err := m.once(b.Write, func() (any, error) {
		return id.Batch{UUID: id.Derive([]byte("batch"), "batch", b.Write.Operation, 1)}, nil
	})
	m.mu.Unlock()
	if err != nil {
		return id.Batch{}, err
	}
	batch := first.(id.Batch)
	if m.jobs[batch] != nil {
		return batch, nil
	}
	j := &memoryJob{gallery: b.Access.Gallery}
	for i, item := range b.Items {
		j.records = append(j.records, m.process(ctx, b, i, item))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.jobs == nil {
		m.jobs = memoryJobs{}
	}
	m.jobs[batch] = j
	return batch, nil
}

// process registers one file.
func (m *memory) process(ctx context.Context, b router.BulkRegistration, i int, item router.BulkItem) router.BulkRecord {
	op := id.Operation{byte(i), 1, 2, 3}
	rec := router.BulkRecord{ID: id.Derive([]byte("record"), "record", op, 1), Filename: item.Filename}
	if strings.Contains(item.Filename, "later") {
		return rec
	}
	rec.Processed, rec.Attempts = true, 1
	registered, err := m.Register(ctx, router.Registration{
		Access: b.Access, Write: router.Write{Operation: op}, Image: []byte(item.Filename), Tags: item.Tags,
	})
	if err != nil {
		rec.Reason = err.Error()
		return rec
	}
	rec.Success, rec.Subject, rec.Event, rec.Attributes = true, registered.Subject, registered.Event, &registered.Attributes
	return rec
}

func (m *memory) BulkProgress(_ context.Context, access router.Access, batch id.Batch, pagingID string) (router.BulkPage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.jobs[batch]
	if j == nil || j.gallery != access.Gallery {
		return router.BulkPage{}, router.Errorf(router.NotFound, "", "The gallery has no such job.")
	}
	from := 0
	if pagingID != "" {
		var err error
		if from, err = strconv.Atoi(strings.TrimPrefix(pagingID, "from-")); err != nil || from >= len(j.records) {
			return router.BulkPage{}, router.Errorf(router.InvalidRequest, "", "This is no paging id of the job.")
		}
	}
	p := router.BulkPage{Records: j.records[from:min(from+memoryPage, len(j.records))]}
	if from+memoryPage < len(j.records) {
		p.Next = fmt.Sprint("from-", from+memoryPage)
	}
	return p, nil
}
