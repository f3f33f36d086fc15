package router

import (
	"context"
	"fmt"

	"facet/internal/id"
	"facet/raftfsm/metafsm"
	"facet/router/calls"
)

// The shape of access keys: an identifier that may be logged, and a secret.
const (
	accessKeyPrefix = "FACET"
	accessKeyLength = 15
	secretKeyLength = 40
	tenantNameMax   = 128
)

// CreateTenant creates a tenant with an access key of the role admin. The error is
// Duplicate when a tenant has this name.
func (r *accessRequests) CreateTenant(ctx context.Context, name string) (AccessKey, error) {
	if name == "" || len(name) > tenantNameMax {
		return AccessKey{}, Errorf(InvalidRequest, "", "a tenant's name has 1 to %d bytes", tenantNameMax)
	}
	tenant := metafsm.Tenant{ID: id.Tenant{UUID: randomID()}, Name: name}
	a, err := proposeMeta(ctx, r.cluster, metafsm.CreateTenantOp, metafsm.CreateTenant{Write: ownWrite(), Tenant: tenant})
	if err != nil {
		return AccessKey{}, err
	}
	switch a.Status {
	case metafsm.Done, metafsm.Replayed:
		return r.CreateAccessKey(ctx, tenant.ID, KeyTerms{Role: RoleAdmin})
	case metafsm.Exists:
		return AccessKey{}, Errorf(Duplicate, "", "a tenant with this name exists: %s", a.Tenant.ID)
	default:
		return AccessKey{}, fmt.Errorf("create tenant: meta answered %v", a.Status)
	}
}

// SetTenantState disables a tenant or enables it again. Every node refuses the requests of a
// disabled tenant within two seconds, as those with a revoked key (confirmedLookup). The error is
// NotFound when there is no such tenant, and Duplicate when it is being deleted.
func (r *accessRequests) SetTenantState(ctx context.Context, tenant id.Tenant, state metafsm.TenantState) error {
	a, err := proposeMeta(ctx, r.cluster, metafsm.SetTenantStateOp, metafsm.SetTenantState{Tenant: tenant, State: state})
	if err != nil {
		return err
	}
	return tenantError("change a tenant's state", a.Status)
}

// tenantError returns the error for a status with which meta refuses a change of a tenant's
// state, and nil for success.
func tenantError(what string, s metafsm.Status) error {
	switch s {
	case metafsm.Done:
		return nil
	case metafsm.UnknownTenant:
		return Errorf(NotFound, "", "there is no such tenant")
	case metafsm.BeingDeleted:
		return Errorf(Duplicate, "", "the tenant is being deleted")
	case metafsm.Restoring:
		return Errorf(Duplicate, "", "a backup is being restored into the cluster; wait for its end")
	default:
		return fmt.Errorf("%s: meta answered %v", what, s)
	}
}

// PutNode writes the record of a node of the cluster.
func (r *accessRequests) PutNode(ctx context.Context, n metafsm.Node) error {
	a, err := proposeMeta(ctx, r.cluster, metafsm.PutNodeOp, metafsm.PutNode{Node: n})
	if err == nil && a.Status == metafsm.TooOld {
		return fmt.Errorf("put the record of node %s: %w", n.Name, metafsm.ErrLevel)
	}
	return err
}

// SetNodeState changes the state of a node, which decides whether it holds
// replicas. The error is NotFound when the node or its heir does not exist or was
// removed.
func (r *accessRequests) SetNodeState(ctx context.Context, c metafsm.SetNodeState) error {
	a, err := proposeMeta(ctx, r.cluster, metafsm.SetNodeStateOp, c)
	if err == nil && a.Status == metafsm.UnknownNode {
		return Errorf(NotFound, "", "there is no such node, or it was removed")
	}
	return err
}

// SetReplicas sets the number of replicas that each shard should have.
func (r *accessRequests) SetReplicas(ctx context.Context, c metafsm.SetReplicas) error {
	_, err := proposeMeta(ctx, r.cluster, metafsm.SetReplicasOp, c)
	return err
}

// PutShards changes the shard map. The error is Unavailable when the map has
// changed meanwhile.
func (r *accessRequests) PutShards(ctx context.Context, c metafsm.PutShards) error {
	a, err := proposeMeta(ctx, r.cluster, metafsm.PutShardsOp, c)
	if err == nil && a.Status == metafsm.StaleEpoch {
		return &Error{Kind: Unavailable, Message: "the shard map has been changed meanwhile; try again", RetryAfter: calls.RetryLater}
	}
	return err
}
