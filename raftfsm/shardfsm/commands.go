package shardfsm

import "facet/raftfsm/command"

// commands is the table of the machine's commands, in order of their codes. Codes are
// stored and never reused; those of bulk registrations are 32 to 47. A new command is
// a row here and a file with its code, Op, struct, answer and effect (apply). See
// docs/formats/commands.md for what else a new form takes.
var commands = [...]command.Row[*Machine]{
	codeGrant:        command.Does(GrantOp, Grant.apply),
	codeRegister:     command.Does(RegisterOp, Register.apply),
	codeUnregister:   command.Does(UnregisterOp, Unregister.apply),
	codeAddEvent:     command.Does(AddEventOp, AddEvent.apply),
	codeReplaceEvent: command.Does(ReplaceEventOp, ReplaceEvent.apply),
	codeRemoveEvent:  command.Does(RemoveEventOp, RemoveEvent.apply),
	codeReturnSlots:  command.Does(ReturnSlotsOp, ReturnSlots.apply),
	codeFence:        command.Does(FenceOp, Fence.apply),
	codePurge:        command.Does(PurgeOp, Purge.apply),
	codeActivate:     command.Does(ActivateOp, Activate.apply),
	codeWithdraw:     command.Does(WithdrawOp, Withdraw.apply),
	codeWiden:        command.Does(WidenOp, Widen.apply),
	codeLoad:         command.Does(LoadOp, Load.apply),
	codeBeginJob:     command.Does(BeginJobOp, BeginJob.apply),
	codeAddJob:       command.Does(AddJobOp, AddJob.apply),
	codeOpenJob:      command.Does(OpenJobOp, OpenJob.apply),
	codeFinishJob:    command.Does(FinishJobOp, FinishJob.apply),
	codeExpireJobs:   command.Does(ExpireJobsOp, ExpireJobs.apply),
}
