package lint

// waitsAllowed are the tests that still wait in real time, and the folders with many of them, each
// with the reason.
var waitsAllowed = map[string]string{
	"internal/memscan TestRegistersInSignalFrameAreFound": "it interrupts another process until it hits a moment",
	"internal/pinned TestOpenRefusesWhatIsNoFile":         "the deadline of a call that would hang",
	"node TestOldFormatsServeTheirFaces":                  "only to write a new fixture, by a flag; the test is in a bubble",
	"node/bucket TestListSurvivesRenamedFiles":            "files are renamed on a disk during the list",
	"node/bucket/clouds":                                  "emulators of clouds in other processes",
	"node/limits TestTenantsShareWorkersFairly":           "it looks until a queue has 13 callers, under a mutex of the queue",
	"node/links TestAbsentNodeEndsOwnWatchOnly":           "the deadline of a call that would hang",
	"raftfsm TestForeignHeartbeatsAreRefused":             "a method of the same name waits, in bubbles",
	"raftfsm TestForeignProofsAreRefused":                 "a method of the same name waits, in bubbles",
	"raftfsm TestPreparedLogIsNeverOverwritten":           "a disk whose writes take no time there",
	"raftfsm TestRewrittenHistoryIsRefused":               "all its parts run in bubbles, by a function that it gets",
	"raftfsm TestVotersDoNotWaitForNonvoter":              "a method of the same name waits, in bubbles",
	"raftfsm TestVotersDoNotWaitForResignedMember":        "a method of the same name waits, in bubbles",
	"raftfsm TestVotersDoNotWaitForWipedNode":             "a method of the same name waits, in bubbles",
	"router/faces TestEnrolmentNeedsMoreQualityThanProbe": "its extractor takes no time there",
	"shard TestCloseWaitsForSearches":                     "the deadline of a call that would hang",
	"shard TestCodesAreSavedBesideWrites":                 "writes beside a save, on real processors and a disk",
	"shard TestHangingSearchBlocksNothing":                "the deadline of a call that would hang",
	"shard TestReadersKeepFacesOfOldSegments":             "writes beside readers, on real processors and a disk",
	"shard TestSearchDuringUpdateFindsSubject":            "searches beside writes, on real processors",
	"shard TestWritesDuringScanAreNotMissed":              "the deadline of a call that would hang",
}
