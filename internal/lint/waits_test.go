package lint

// waitsAllowed are the tests that still wait in real time, and the folders with many of them, each
// with the reason.
var waitsAllowed = map[string]string{
	"internal/fair TestCancelledCallerLosesNoTurn":        "its waits of microseconds race with cancellations on real processors",
	"internal/memscan TestRegistersInSignalFrameAreFound": "it interrupts another process until it hits a moment",
	"internal/pinned TestOpenRefusesWhatIsNoFile":         "the deadline of a call that would hang",
	"node TestOldFormatsServeTheirFaces":                  "only to write a new fixture, by a flag; the test is in a bubble",
	"node/bucket TestListSurvivesRenamedFiles":            "files are renamed on a disk during the list",
	"node/bucket/clouds":                                  "emulators of clouds in other processes",
	"node/limits TestTenantsShareWorkersFairly":           "it polls a queue: to do",
	"node/links TestAbsentNodeEndsOwnWatchOnly":           "the deadline of a call that would hang",
	"raftfsm":                   "groups on disks and loopback: to do",
	"raftfsm/shardfsm":          "groups on disks and loopback: to do",
	"router BenchmarkConfirmed": "it measures rounds that take a time",
	"router TestEnrolmentNeedsMoreQualityThanProbe": "its extractor takes no time there",
	"shard": "searches beside writers on real processors; deadlines of calls that would hang",
}
