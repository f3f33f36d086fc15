package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/spf13/pflag"

	"facet.internal/client"
	"facet/cmd/facet/admin"
	"facet/cmd/facet/auditing"
	"facet/cmd/facet/cli"
	"facet/cmd/facet/tenant"
)

// logPlace has the flags that name an audit log of a cluster: a tenant's, or the cluster's own.
type logPlace struct {
	cluster bool
	where   tenant.Connection
	set     *pflag.FlagSet
}

func (p *logPlace) flags(f *pflag.FlagSet) {
	p.set = f
	p.where.Flags(f)
	p.where.PurposeFlag(f)
	f.BoolVar(&p.cluster, "cluster", false, "the cluster's own log; --profile is an operator's then")
}

// tenant returns the client of the profile's tenant.
func (p *logPlace) tenant() (*client.Client, error) {
	_, cfg, err := p.where.Read()
	if err != nil {
		return nil, err
	}
	return client.New(cfg)
}

// operator returns the cluster's own log, for the operator whose profile the flags name.
func (p *logPlace) operator() (operatorLog, error) {
	if p.set.Changed("purpose") {
		return operatorLog{}, cli.Misuse(errors.New("--purpose is for a tenant's log: an operator's requests state none"))
	}
	t := target{profile: p.set.Lookup("profile").Value.String(), dir: p.set.Lookup("dir").Value.String(), set: p.set}
	where, err := t.find()
	if err != nil {
		return operatorLog{}, err
	}
	c, err := admin.NewClient(where)
	return operatorLog{operator: c}, err
}

// operatorLog is an audit log as an operator reads it.
type operatorLog struct {
	operator *admin.Client
	name     string // of the tenant, or empty for the cluster's own log
}

// Read implements auditing.Source.
func (l operatorLog) Read(ctx context.Context, path string, limit int) ([]byte, error) {
	b, err := l.operator.AuditFile(ctx, l.name, path)
	e, refused := errors.AsType[*admin.AnswerError](err)
	switch {
	case refused && e.Status == http.StatusGone:
		return nil, fmt.Errorf("%s: %w", path, auditing.ErrGone)
	case refused && e.Status == http.StatusNotFound:
		return nil, fmt.Errorf("%s: %w: %w", path, fs.ErrNotExist, err)
	case err != nil:
		return nil, err
	case len(b) > limit:
		return nil, fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return b, nil
}

// AuditRecords returns a page of the cluster's log.
func (l operatorLog) AuditRecords(ctx context.Context, q client.AuditQuery) (page client.AuditPage, err error) {
	return page, l.operator.AuditRecords(ctx, q.Encode(), &page)
}
