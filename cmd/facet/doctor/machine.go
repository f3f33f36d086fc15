package doctor

import (
	"runtime"
	"time"

	"facet/shard/kernel"
)

// clockErrorMax is the largest error of a synchronised clock that is fine. Nodes trust each other's
// clocks within five seconds.
const clockErrorMax = time.Second

// machine checks what does not depend on settings.
func (x *examination) machine() {
	switch name := kernel.Active(); {
	case runtime.GOARCH == "amd64" && (name == "plain" || name == "portable"):
		x.warn("processor", "choose a machine (or a CPU model of the virtual machine) with AVX2 or AVX-512", "it has no AVX2: searches take several times as long")
	default:
		x.ok("processor", "%d cores, searches use %s", runtime.GOMAXPROCS(0), name)
	}
	switch mode := hugePages(); mode {
	case "never":
		x.warn("huge pages", "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled", "transparent huge pages are off: searches take up to twice as long")
	case "":
	default:
		x.ok("huge pages", "transparent huge pages: %s", mode)
	}
	switch off, synchronised, known := clockError(); {
	case !known:
	case !synchronised:
		x.warn("time sync", "start chrony or systemd-timesyncd (timedatectl set-ntp true)", "no time service keeps this machine's clock right")
	case off > clockErrorMax:
		x.warn("time sync", "look at the time service", "the time service says that the clock may be %s off", off)
	default:
		x.ok("time sync", "the clock is synchronised to %s", off.Round(time.Millisecond))
	}
}
