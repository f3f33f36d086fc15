package metafsm

import "facet/raftfsm/command"

// commands is the table of the machine's commands, in order of their codes. Codes are
// stored and never reused. A new command is a row here and a file with its code, Op,
// struct, answer and effect (apply). See docs/formats/commands.md for what else a new
// form takes.
var commands = [...]command.Row[*Machine]{
	codeFound:             command.Does(FoundOp, Found.apply),
	codePutNode:           command.Does(PutNodeOp, PutNode.apply),
	codePutShards:         command.Does(PutShardsOp, PutShards.apply),
	codeCreateTenant:      command.Does(CreateTenantOp, CreateTenant.apply),
	codePutAccessKey:      command.Does(PutAccessKeyOp, PutAccessKey.apply),
	codeCreateGallery:     command.Does(CreateGalleryOp, CreateGallery.apply),
	codeCreateApplication: command.Does(CreateApplicationOp, CreateApplication.apply),
	codeGrant:             command.Does(GrantOp, Grant.apply),
	codeUpdateGallery:     command.Does(UpdateGalleryOp, UpdateGallery.apply),
	codeDeleteGallery:     command.Does(DeleteGalleryOp, DeleteGallery.apply),
	codeForgetGallery:     command.Does(ForgetGalleryOp, ForgetGallery.apply),
	codeUpdateApplication: command.Does(UpdateApplicationOp, UpdateApplication.apply),
	codeDeleteApplication: command.Does(DeleteApplicationOp, DeleteApplication.apply),
	codeDeleteAccessKey:   command.Does(DeleteAccessKeyOp, DeleteAccessKey.apply),
	codeReclaim:           command.Does(ReclaimOp, Reclaim.apply),
	codeCreateTag:         command.Does(CreateTagOp, CreateTag.apply),
	codeRenameTag:         command.Does(RenameTagOp, RenameTag.apply),
	codeDeleteTag:         command.Does(DeleteTagOp, DeleteTag.apply),
	codeSettle:            command.Does(SettleOp, Settle.apply),
	codeSetNodeState:      command.Does(SetNodeStateOp, SetNodeState.apply),
	codeLoad:              command.Does(LoadOp, Load.apply),
	codeRaiseLevel:        command.Does(RaiseLevelOp, RaiseLevel.apply),
	codeRekey:             command.Does(RekeyOp, Rekey.apply),
}
