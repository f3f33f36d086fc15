package metrics

import (
	"regexp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Process lists the metrics of the Go runtime and of the process that help to find out why a
// node is slow. They keep the names of Prometheus' collectors, so they are not in the Catalogue.
var Process = &Section{Title: "The Go runtime and the process"}

// sources matches the names of Process' metrics in package runtime/metrics.
var sources = define(Process,
	reading{Counter, "process_cpu_seconds_total", "", "Processor time, including models; its rate is the busy cores."},
	reading{Gauge, "process_resident_memory_bytes", "", "RAM of Go heap, templates and models."},
	reading{Gauge, "process_open_fds", "", "Open files and connections."},
	reading{Gauge, "process_max_fds", "", "Limit of these."},
	reading{Gauge, "process_start_time_seconds", "", "Start, in seconds since 1970."},
	reading{Gauge, "go_sched_gomaxprocs_threads", "", "Cores that Go uses."},
	reading{Gauge, "go_goroutines", "", "Goroutines."},
	reading{Gauge, "go_sched_goroutines_runnable_goroutines", "/sched/goroutines/runnable:goroutines", "Goroutines waiting for a core."},
	reading{Gauge, "go_sched_goroutines_not_in_go_goroutines", "/sched/goroutines/not-in-go:goroutines", "Goroutines in system calls or models."},
	reading{Histogram, "go_sched_latencies_seconds", "/sched/latencies:seconds", "Waits for a core; long waits mean overloaded processors."},
	reading{Histogram, "go_sched_pauses_total_gc_seconds", "/sched/pauses/total/gc:seconds", "Stop-the-world pauses for garbage collection."},
	reading{Counter, "go_gc_cycles_total_gc_cycles_total", "/gc/cycles/total:gc-cycles", "Garbage collections."},
	reading{
		Counter, "go_cpu_classes_gc_total_cpu_seconds_total", "/cpu/classes/gc/total:cpu-seconds",
		"Estimated part of go_cpu_classes_total_cpu_seconds_total for garbage collection.",
	},
	reading{Counter, "go_cpu_classes_total_cpu_seconds_total", "/cpu/classes/total:cpu-seconds", "Processor time available to Go code."},
	reading{
		Gauge, "go_gc_limiter_last_enabled_gc_cycle", "/gc/limiter/last-enabled:gc-cycle",
		"Last collection slowed for taking half the processor time; 0 if none.",
	},
	reading{Counter, "go_sync_mutex_wait_total_seconds_total", "/sync/mutex/wait/total:seconds", "Time that goroutines waited for locks."},
	reading{Gauge, "go_gc_heap_live_bytes", "/gc/heap/live:bytes", "Heap in use at the last collection."},
	reading{Gauge, "go_gc_heap_goal_bytes", "/gc/heap/goal:bytes", "Heap size when the next collection ends."},
	reading{Gauge, "go_gc_gogc_percent", "", "Heap goal beyond the live heap, in per cent (GOGC)."},
	reading{Gauge, "go_gc_gomemlimit_bytes", "", "Go's memory limit (GOMEMLIMIT); 9.2e18 if none."},
	reading{Gauge, "go_memory_classes_total_bytes", "/memory/classes/total:bytes", "Go's memory, without templates and models."},
	reading{Gauge, "go_memory_classes_heap_objects_bytes", "/memory/classes/heap/objects:bytes", "Go's memory in objects."},
	reading{Gauge, "go_memory_classes_heap_unused_bytes", "/memory/classes/heap/unused:bytes", "Go's memory kept between objects."},
	reading{Gauge, "go_memory_classes_heap_free_bytes", "/memory/classes/heap/free:bytes", "Go's free memory, not yet returned to the system."},
	reading{Gauge, "go_memory_classes_heap_released_bytes", "/memory/classes/heap/released:bytes", "Go's memory returned to the system."},
	reading{Gauge, "go_memory_classes_heap_stacks_bytes", "/memory/classes/heap/stacks:bytes", "Go's memory in goroutine stacks."},
)

// reading is a metric of the Go runtime or of the process. Its source is empty if the collectors
// read it anyway.
type reading struct {
	kind               Kind
	name, source, help string
}

// define adds readings to a section, and returns an expression that matches their sources.
func define(s *Section, list ...reading) *regexp.Regexp {
	var all []string
	for _, r := range list {
		s.Metrics = append(s.Metrics, &Definition{Name: r.name, Kind: r.kind, Help: r.help})
		if r.source != "" {
			all = append(all, regexp.QuoteMeta(r.source))
		}
	}
	return regexp.MustCompile("^(" + strings.Join(all, "|") + ")$")
}

// RegisterProcess adds the collectors of the Go runtime and of the process to a registry.
func RegisterProcess(r prometheus.Registerer) {
	r.MustRegister(
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.GoRuntimeMetricsRule{Matcher: sources})),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
}
