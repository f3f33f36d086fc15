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
	reading{Counter, "process_cpu_seconds_total", "", "Processor time of the process, the models' included: its rate is the number of busy cores."},
	reading{Gauge, "process_resident_memory_bytes", "", "Memory of the process in RAM: the Go heap, templates and models."},
	reading{Gauge, "process_open_fds", "", "Open files and connections."},
	reading{Gauge, "process_max_fds", "", "Files and connections that may be open."},
	reading{Gauge, "process_start_time_seconds", "", "When the process started, in seconds since 1970."},
	reading{Gauge, "go_sched_gomaxprocs_threads", "", "Cores that Go code uses at once."},
	reading{Gauge, "go_goroutines", "", "Goroutines."},
	reading{Gauge, "go_sched_goroutines_runnable_goroutines", "/sched/goroutines/runnable:goroutines", "Goroutines that could run and wait for a core."},
	reading{Gauge, "go_sched_goroutines_not_in_go_goroutines", "/sched/goroutines/not-in-go:goroutines", "Goroutines in a system call or in a model."},
	reading{Histogram, "go_sched_latencies_seconds", "/sched/latencies:seconds", "How long goroutines waited for a core. Long waits mean that the processors are overloaded."},
	reading{Histogram, "go_sched_pauses_total_gc_seconds", "/sched/pauses/total/gc:seconds", "Pauses of all goroutines for the garbage collector."},
	reading{Counter, "go_gc_cycles_total_gc_cycles_total", "/gc/cycles/total:gc-cycles", "Garbage collections."},
	reading{Counter, "go_cpu_classes_gc_total_cpu_seconds_total", "/cpu/classes/gc/total:cpu-seconds", "Processor time of the garbage collector, an estimate; compare it with go_cpu_classes_total_cpu_seconds_total."},
	reading{Counter, "go_cpu_classes_total_cpu_seconds_total", "/cpu/classes/total:cpu-seconds", "Processor time that Go code could have taken."},
	reading{Gauge, "go_gc_limiter_last_enabled_gc_cycle", "/gc/limiter/last-enabled:gc-cycle", "The last garbage collection that was slowed down because it took half of the processor time; 0 is none."},
	reading{Counter, "go_sync_mutex_wait_total_seconds_total", "/sync/mutex/wait/total:seconds", "Time that goroutines waited for locks."},
	reading{Gauge, "go_gc_heap_live_bytes", "/gc/heap/live:bytes", "Heap that the last garbage collection found in use."},
	reading{Gauge, "go_gc_heap_goal_bytes", "/gc/heap/goal:bytes", "Size of the heap at which the next garbage collection ends."},
	reading{Gauge, "go_gc_gogc_percent", "", "The size of the heap goal beyond the live heap, in per cent of it (GOGC)."},
	reading{Gauge, "go_gc_gomemlimit_bytes", "", "The memory limit of the Go runtime (GOMEMLIMIT); 9.2e18 is none."},
	reading{Gauge, "go_memory_classes_total_bytes", "/memory/classes/total:bytes", "Memory of the Go runtime. The templates and the models take theirs elsewhere."},
	reading{Gauge, "go_memory_classes_heap_objects_bytes", "/memory/classes/heap/objects:bytes", "The part of it with objects."},
	reading{Gauge, "go_memory_classes_heap_unused_bytes", "/memory/classes/heap/unused:bytes", "The part of it that is kept between objects."},
	reading{Gauge, "go_memory_classes_heap_free_bytes", "/memory/classes/heap/free:bytes", "The part of it that is free and not yet given back to the system."},
	reading{Gauge, "go_memory_classes_heap_released_bytes", "/memory/classes/heap/released:bytes", "The part of it that was given back to the system."},
	reading{Gauge, "go_memory_classes_heap_stacks_bytes", "/memory/classes/heap/stacks:bytes", "The part of it with the stacks of goroutines."},
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
