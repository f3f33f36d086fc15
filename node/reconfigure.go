package node

import (
	"cmp"

	"facet/node/httpapi"
)

// rules returns the part of the configuration that says which requests are served.
func (c Config) rules() httpapi.Rules {
	return httpapi.Rules{
		Canonical: c.Canonical, MustSign: c.MustSign, Health: c.Health, Console: c.Console, Origins: c.CORS,
		TenantRate: c.TenantRate, ApplicationRate: c.ApplicationRate,
	}
}

// Reconfigure takes over from c what a running node can change: which requests are served and at which
// rates, Memory, DiskReserve, Away, BackupEvery, BackupKeep and TracesRatio. It ignores the rest.
func (n *Node) Reconfigure(c Config) error {
	if err := n.api.SetRules(c.rules()); err != nil {
		return err
	}
	n.limits.Change(c.Memory, c.DiskReserve)
	n.placement.SetAway(cmp.Or(c.Away, AwayDefault))
	if n.cfg.BackupTo != "" && c.BackupEvery > 0 && c.BackupKeep > 0 {
		n.backups.SetPlan(c.BackupEvery, c.BackupKeep)
	}
	if n.tracing != nil {
		n.tracing.SetRatio(c.TracesRatio)
	}
	return nil
}
