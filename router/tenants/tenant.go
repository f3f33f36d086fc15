package tenants

import (
	"context"
	"fmt"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router"
	"facet/router/admission"
	"facet/router/calls"
	"facet/router/cluster"
)

const tenantNameMax = 128

// CreateTenant creates a tenant with an access key of the role admin. The error is
// Duplicate when a tenant has this name.
func (r *TenantRequests) CreateTenant(ctx context.Context, name string) (router.AccessKey, error) {
	if name == "" || len(name) > tenantNameMax {
		return router.AccessKey{}, router.Errorf(router.InvalidRequest, "", "a tenant's name has 1 to %d bytes", tenantNameMax)
	}
	tenant := metafsm.Tenant{ID: id.Tenant{UUID: cluster.RandomID()}, Name: name}
	a, err := cluster.ProposeMeta(ctx, r.cluster, metafsm.CreateTenantOp, metafsm.CreateTenant{Write: cluster.OwnWrite(), Tenant: tenant})
	if err != nil {
		return router.AccessKey{}, err
	}
	switch a.Status {
	case metafsm.Done, metafsm.Replayed:
		return r.CreateAccessKey(ctx, tenant.ID, router.KeyTerms{Role: router.RoleAdmin})
	case metafsm.Exists:
		return router.AccessKey{}, router.Errorf(router.Duplicate, "", "a tenant with this name exists: %s", a.Tenant.ID)
	default:
		return router.AccessKey{}, fmt.Errorf("create tenant: meta answered %v", a.Status)
	}
}

// SetTenantState disables a tenant or enables it again. Every node refuses the requests of a
// disabled tenant within two seconds, as those with a revoked key (cluster.ConfirmedLookup). The error is
// NotFound when there is no such tenant, and Duplicate when it is being deleted.
func (r *TenantRequests) SetTenantState(ctx context.Context, tenant id.Tenant, state metafsm.TenantState) error {
	a, err := cluster.ProposeMeta(ctx, r.cluster, metafsm.SetTenantStateOp, metafsm.SetTenantState{Tenant: tenant, State: state})
	if err != nil {
		return err
	}
	return admission.TenantError("change a tenant's state", a.Status)
}

// PutNode writes the record of a node of the cluster.
func (r *TenantRequests) PutNode(ctx context.Context, n metafsm.Node) error {
	a, err := cluster.ProposeMeta(ctx, r.cluster, metafsm.PutNodeOp, metafsm.PutNode{Node: n})
	if err == nil && a.Status == metafsm.TooOld {
		return fmt.Errorf("put the record of node %s: %w", n.Name, metafsm.ErrLevel)
	}
	return err
}

// SetNodeState changes the state of a node, which decides whether it holds
// replicas. The error is NotFound when the node or its heir does not exist or was
// removed.
func (r *TenantRequests) SetNodeState(ctx context.Context, c metafsm.SetNodeState) error {
	a, err := cluster.ProposeMeta(ctx, r.cluster, metafsm.SetNodeStateOp, c)
	if err == nil && a.Status == metafsm.UnknownNode {
		return router.Errorf(router.NotFound, "", "there is no such node, or it was removed")
	}
	return err
}

// SetReplicas sets the number of replicas that each shard should have.
func (r *TenantRequests) SetReplicas(ctx context.Context, c metafsm.SetReplicas) error {
	_, err := cluster.ProposeMeta(ctx, r.cluster, metafsm.SetReplicasOp, c)
	return err
}

// PutShards changes the shard map. The error is Unavailable when the map has
// changed meanwhile.
func (r *TenantRequests) PutShards(ctx context.Context, c metafsm.PutShards) error {
	a, err := cluster.ProposeMeta(ctx, r.cluster, metafsm.PutShardsOp, c)
	if err == nil && a.Status == metafsm.StaleEpoch {
		return &router.Error{Kind: router.Unavailable, Message: "the shard map has been changed meanwhile; try again", RetryAfter: calls.RetryLater}
	}
	return err
}
