package shardfsm

import "facet/raftfsm/command"

// The commands, as the callers of Propose name them. A code is stored before its
// command in the log and is never reused. Bulk registrations have the codes 32 to 47, audit logs 48 to 63.
var (
	GrantOp         = command.Op[Grant, StatusAnswer]{Code: 1, Version: 1}
	RegisterOp      = command.Op[Register, RegisterAnswer]{Code: 2, Version: 1}
	UnregisterOp    = command.Op[Unregister, UnregisterAnswer]{Code: 3, Version: 1}
	AddEventOp      = command.Op[AddEvent, RegisterAnswer]{Code: 4, Version: 1}
	ReplaceEventOp  = command.Op[ReplaceEvent, RegisterAnswer]{Code: 5, Version: 1}
	RemoveEventOp   = command.Op[RemoveEvent, UnregisterAnswer]{Code: 6, Version: 1}
	ReturnSlotsOp   = command.Op[ReturnSlots, ReturnSlotsAnswer]{Code: 7, Version: 1}
	FenceOp         = command.Op[Fence, FenceAnswer]{Code: 8, Version: 1}
	PurgeOp         = command.Op[Purge, FenceAnswer]{Code: 9, Version: 1}
	ActivateOp      = command.Op[Activate, RegisterAnswer]{Code: 10, Version: 1}
	WithdrawOp      = command.Op[Withdraw, StatusAnswer]{Code: 11, Version: 1}
	WidenOp         = command.Op[Widen, StatusAnswer]{Code: 12, Version: 1}
	LoadOp          = command.Op[Load, LoadAnswer]{Code: 13, Version: 1}
	ClaimOp         = command.Op[Claim, ClaimAnswer]{Code: 14, Version: 1}
	BarOp           = command.Op[Bar, StatusAnswer]{Code: 15, Version: 1}
	RefuseOp        = command.Op[Refuse, RegisterAnswer]{Code: 16, Version: 1}
	ExpireOp        = command.Op[Expire, ExpireAnswer]{Code: 20, Version: 1}
	BeginMergeOp    = command.Op[BeginMerge, StatusAnswer]{Code: 24, Version: 1}
	EndMergeOp      = command.Op[EndMerge, StatusAnswer]{Code: 25, Version: 1}
	StopReceivingOp = command.Op[StopReceiving, StatusAnswer]{Code: 26, Version: 1}
	ForgetMergeOp   = command.Op[ForgetMerge, StatusAnswer]{Code: 27, Version: 1}
	GiveUpMergeOp   = command.Op[GiveUpMerge, StatusAnswer]{Code: 28, Version: 1}
	BeginJobOp      = command.Op[BeginJob, JobAnswer]{Code: 32, Version: 1}
	AddJobOp        = command.Op[AddJob, JobAnswer]{Code: 33, Version: 1, AnswersAs: 32}
	OpenJobOp       = command.Op[OpenJob, JobAnswer]{Code: 34, Version: 1, AnswersAs: 32}
	FinishJobOp     = command.Op[FinishJob, JobAnswer]{Code: 35, Version: 1, AnswersAs: 32}
	ExpireJobsOp    = command.Op[ExpireJobs, JobAnswer]{Code: 36, Version: 1, AnswersAs: 32}
	DropJobOp       = command.Op[DropJob, JobAnswer]{Code: 37, Version: 1, AnswersAs: 32}
	RedactJobOp     = command.Op[RedactJob, JobAnswer]{Code: 38, Version: 1, AnswersAs: 32}
	PutItemOp       = command.Op[PutItem, JobAnswer]{Code: 39, Version: 1, AnswersAs: 32}
	BeginLogOp      = command.Op[BeginLog, LogAnswer]{Code: 48, Version: 1}
	AppendLogOp     = command.Op[AppendLog, LogAnswer]{Code: 49, Version: 1, AnswersAs: 48}
	ExpireLogOp     = command.Op[ExpireLog, LogAnswer]{Code: 50, Version: 1, AnswersAs: 48}
	DropLogOp       = command.Op[DropLog, LogAnswer]{Code: 51, Version: 1, AnswersAs: 48}
)

// commands is the machine's table, indexed by code: a code given out twice does not
// compile. A new command is an Op and a row here, and a file with its struct, answer
// and effect (apply). docs/formats/commands.md says what else a new form needs.
var commands = [...]command.Row[*Machine]{
	1:  command.Does(GrantOp, Grant.apply),
	2:  command.Does(RegisterOp, Register.apply),
	3:  command.Does(UnregisterOp, Unregister.apply),
	4:  command.Does(AddEventOp, AddEvent.apply),
	5:  command.Does(ReplaceEventOp, ReplaceEvent.apply),
	6:  command.Does(RemoveEventOp, RemoveEvent.apply),
	7:  command.Does(ReturnSlotsOp, ReturnSlots.apply),
	8:  command.Does(FenceOp, Fence.apply),
	9:  command.Does(PurgeOp, Purge.apply),
	10: command.Does(ActivateOp, Activate.apply),
	11: command.Does(WithdrawOp, Withdraw.apply),
	12: command.Does(WidenOp, Widen.apply),
	13: command.Does(LoadOp, Load.apply),
	14: command.Does(ClaimOp, Claim.apply),
	15: command.Does(BarOp, Bar.apply),
	16: command.Does(RefuseOp, Refuse.apply),
	20: command.Does(ExpireOp, Expire.apply),
	24: command.Does(BeginMergeOp, BeginMerge.apply),
	25: command.Does(EndMergeOp, EndMerge.apply),
	26: command.Does(StopReceivingOp, StopReceiving.apply),
	27: command.Does(ForgetMergeOp, ForgetMerge.apply),
	28: command.Does(GiveUpMergeOp, GiveUpMerge.apply),
	32: command.Does(BeginJobOp, BeginJob.apply),
	33: command.Does(AddJobOp, AddJob.apply),
	34: command.Does(OpenJobOp, OpenJob.apply),
	35: command.Does(FinishJobOp, FinishJob.apply),
	36: command.Does(ExpireJobsOp, ExpireJobs.apply),
	37: command.Does(DropJobOp, DropJob.apply),
	38: command.Does(RedactJobOp, RedactJob.apply),
	39: command.Does(PutItemOp, PutItem.apply),
	48: command.Does(BeginLogOp, BeginLog.apply),
	49: command.Does(AppendLogOp, AppendLog.apply),
	50: command.Does(ExpireLogOp, ExpireLog.apply),
	51: command.Does(DropLogOp, DropLog.apply),
}
