package metafsm

import "facet/raftfsm/command"

// The commands, as the callers of Propose name them. A code is stored before its
// command in the log and is never reused.
var (
	FoundOp             = command.Op[Found, FoundAnswer]{Code: 1, Version: 1}
	PutNodeOp           = command.Op[PutNode, StatusAnswer]{Code: 2, Version: 1}
	PutShardsOp         = command.Op[PutShards, PutShardsAnswer]{Code: 3, Version: 1}
	CreateTenantOp      = command.Op[CreateTenant, CreateTenantAnswer]{Code: 4, Version: 1}
	PutAccessKeyOp      = command.Op[PutAccessKey, StatusAnswer]{Code: 5, Version: 1}
	CreateGalleryOp     = command.Op[CreateGallery, CreateGalleryAnswer]{Code: 6, Version: 1}
	CreateApplicationOp = command.Op[CreateApplication, ApplicationAnswer]{Code: 7, Version: 1}
	GrantOp             = command.Op[Grant, GrantAnswer]{Code: 8, Version: 1}
	UpdateGalleryOp     = command.Op[UpdateGallery, GalleryAnswer]{Code: 9, Version: 2}
	DeleteGalleryOp     = command.Op[DeleteGallery, GalleryAnswer]{Code: 10, Version: 1}
	ForgetGalleryOp     = command.Op[ForgetGallery, StatusAnswer]{Code: 11, Version: 1}
	UpdateApplicationOp = command.Op[UpdateApplication, ApplicationAnswer]{Code: 12, Version: 2}
	DeleteApplicationOp = command.Op[DeleteApplication, StatusAnswer]{Code: 13, Version: 1}
	DeleteAccessKeyOp   = command.Op[DeleteAccessKey, StatusAnswer]{Code: 14, Version: 1}
	ReclaimOp           = command.Op[Reclaim, ReclaimAnswer]{Code: 15, Version: 1}
	CreateTagOp         = command.Op[CreateTag, TagAnswer]{Code: 16, Version: 1}
	RenameTagOp         = command.Op[RenameTag, TagAnswer]{Code: 17, Version: 1}
	DeleteTagOp         = command.Op[DeleteTag, TagAnswer]{Code: 18, Version: 1}
	SettleOp            = command.Op[Settle, StatusAnswer]{Code: 19, Version: 1}
	SetNodeStateOp      = command.Op[SetNodeState, StatusAnswer]{Code: 20, Version: 1}
	LoadOp              = command.Op[Load, LoadAnswer]{Code: 21, Version: 1}
	RaiseLevelOp        = command.Op[RaiseLevel, RaiseLevelAnswer]{Code: 22, Version: 1}
	RekeyOp             = command.Op[Rekey, RekeyAnswer]{Code: 23, Version: 1}
	SetTenantOp         = command.Op[SetTenant, StatusAnswer]{Code: 24, Version: 1}
	SetReplicasOp       = command.Op[SetReplicas, StatusAnswer]{Code: 25, Version: 1}
	SetSignerOp         = command.Op[SetSigner, StatusAnswer]{Code: 34, Version: 1}
	SetTenantStateOp    = command.Op[SetTenantState, StatusAnswer]{Code: 38, Version: 1}
	DeleteTenantOp      = command.Op[DeleteTenant, StatusAnswer]{Code: 39, Version: 1}
	NoteKeyUsesOp       = command.Op[NoteKeyUses, StatusAnswer]{Code: 40, Version: 1}
	SetAuditOp          = command.Op[SetAudit, StatusAnswer]{Code: 44, Version: 1}
	SetAuditKeyOp       = command.Op[SetAuditKey, StatusAnswer]{Code: 45, Version: 1}
)

// commands is the machine's table, indexed by code: a code given out twice does not
// compile. A new command is an Op and a row here, and a file with its struct, answer
// and effect (apply). docs/formats/commands.md says what else a new form needs.
var commands = [...]command.Row[*Machine]{
	1:  command.Does(FoundOp, Found.apply),
	2:  command.Does(PutNodeOp, statusOnly(PutNode.apply)),
	3:  command.Does(PutShardsOp, PutShards.apply),
	4:  command.Does(CreateTenantOp, CreateTenant.apply),
	5:  command.Does(PutAccessKeyOp, statusOnly(PutAccessKey.apply)),
	6:  command.Does(CreateGalleryOp, CreateGallery.apply),
	7:  command.Does(CreateApplicationOp, CreateApplication.apply),
	8:  command.Does(GrantOp, Grant.apply),
	9:  command.Does(UpdateGalleryOp, UpdateGallery.apply),
	10: command.Does(DeleteGalleryOp, DeleteGallery.apply),
	11: command.Does(ForgetGalleryOp, statusOnly(ForgetGallery.apply)),
	12: command.Does(UpdateApplicationOp, UpdateApplication.apply),
	13: command.Does(DeleteApplicationOp, statusOnly(DeleteApplication.apply)),
	14: command.Does(DeleteAccessKeyOp, statusOnly(DeleteAccessKey.apply)),
	15: command.Does(ReclaimOp, Reclaim.apply),
	16: command.Does(CreateTagOp, CreateTag.apply),
	17: command.Does(RenameTagOp, RenameTag.apply),
	18: command.Does(DeleteTagOp, DeleteTag.apply),
	19: command.Does(SettleOp, statusOnly(Settle.apply)),
	20: command.Does(SetNodeStateOp, statusOnly(SetNodeState.apply)),
	21: command.Does(LoadOp, Load.apply),
	22: command.Does(RaiseLevelOp, RaiseLevel.apply),
	23: command.Does(RekeyOp, Rekey.apply),
	24: command.Does(SetTenantOp, statusOnly(SetTenant.apply)),
	25: command.Does(SetReplicasOp, statusOnly(SetReplicas.apply)),
	34: command.Does(SetSignerOp, statusOnly(SetSigner.apply)),
	38: command.Does(SetTenantStateOp, statusOnly(SetTenantState.apply)),
	39: command.Does(DeleteTenantOp, statusOnly(DeleteTenant.apply)),
	40: command.Does(NoteKeyUsesOp, statusOnly(NoteKeyUses.apply)),
	44: command.Does(SetAuditOp, statusOnly(SetAudit.apply)),
	45: command.Does(SetAuditKeyOp, statusOnly(SetAuditKey.apply)),
}

// statusOnly adapts the effect of a command that returns only a status.
func statusOnly[C any](effect func(C, *Machine) Status) func(C, *Machine) StatusAnswer {
	return func(c C, m *Machine) StatusAnswer { return StatusAnswer{effect(c, m)} }
}
