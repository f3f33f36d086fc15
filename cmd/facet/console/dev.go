package console

import (
	"fmt"
	"io"

	"facet.internal/client"
	"facet/cmd/facet/dev"
)

// OpenDev starts the console of a cluster of facet dev, with its tenant and its administrator. out is
// Config.Out.
func OpenDev(c *dev.Cluster, out io.Writer) (*Server, error) {
	i := c.Info()
	tenant, err := client.New(client.Config{
		BaseURLs: i.BaseURLs, PortalURLs: i.PortalURLs, CAFile: i.CAFile, AccessKey: i.AccessKey, SecretKey: i.SecretKey,
		Region: i.Region, Service: i.Service,
	})
	if err != nil {
		return nil, fmt.Errorf("open the console: %w", err)
	}
	return Open(Config{Tenant: tenant, AccessKey: i.AccessKey, Region: i.Region, Nodes: i.BaseURLs, Status: c.Admin().Status, Receipt: c.Admin().Receipt, Out: out})
}
