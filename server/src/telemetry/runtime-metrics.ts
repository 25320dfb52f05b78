import type { MetricType } from '@prometheus-io/client'

type RuntimeMetric = {
  readonly name: string
  readonly type: MetricType
  readonly labelNames: readonly string[]
  readonly help: string
  readonly advice: string
}

type More = { readonly labelNames?: readonly string[]; readonly advice?: string }

const metric = (
  type: MetricType,
  name: string,
  help: string,
  { labelNames = [], advice = '' }: More = {},
): RuntimeMetric => ({
  name,
  type,
  labelNames,
  help,
  advice,
})

const lag = (which: string, what: string, more?: More) =>
  metric('gauge', `nodejs_eventloop_lag_${which}seconds`, what, more)

const ONE_CORE = 'If it grows by nearly 1 per second, the process uses a whole core: add processes.'
const RISING = 'If it rises for hours at the same load, there is a leak: restart the process, and report it.'

/**
 * What the client for Prometheus measures by itself. It stands here because the set differs by operating system, and the document must
 * not; a test compares it with what a process has.
 */
export const RUNTIME_METRICS: readonly RuntimeMetric[] = [
  metric('counter', 'process_cpu_user_seconds_total', 'CPU time of the program itself (user mode), in seconds.'),
  metric(
    'counter',
    'process_cpu_system_seconds_total',
    'CPU time of the operating system for the program (kernel mode), in seconds.',
  ),
  metric('counter', 'process_cpu_seconds_total', 'CPU time in user and kernel mode together, in seconds.', {
    advice: ONE_CORE,
  }),
  metric('gauge', 'process_start_time_seconds', 'Time when the process started, in seconds since 1970 (Unix time).'),
  metric('gauge', 'process_resident_memory_bytes', 'Resident memory (RSS) of the process, in bytes.', {
    advice: `The process needs \`memory.budget_bytes\` and about 400 MiB. ${RISING}`,
  }),
  metric(
    'gauge',
    'process_virtual_memory_bytes',
    'Virtual memory (address space) of the process, in bytes. Most of it is never used.',
  ),
  metric('gauge', 'process_heap_bytes', 'Data segment of the process, in bytes.'),
  metric('gauge', 'process_open_fds', 'Number of open file descriptors: connections and files.', {
    advice: 'Near `process_max_fds`, raise the limit of open files (`ulimit -n`).',
  }),
  metric('gauge', 'process_max_fds', 'Limit of open file descriptors of the process.'),
  lag('', 'Event loop delay, measured at this scrape, in seconds.'),
  lag('min_', 'Minimum event loop delay since the last scrape, in seconds.'),
  lag('max_', 'Maximum event loop delay since the last scrape, in seconds.'),
  lag('mean_', 'Mean event loop delay since the last scrape, in seconds.'),
  lag('stddev_', 'Standard deviation of the event loop delay since the last scrape, in seconds.'),
  lag('p50_', 'Event loop delay since the last scrape, 50th percentile, in seconds.'),
  lag('p90_', 'Event loop delay since the last scrape, 90th percentile, in seconds.'),
  lag('p99_', 'Event loop delay since the last scrape, 99th percentile, in seconds.', {
    advice: 'Above 0.1 for minutes, the process is overloaded: add processes.',
  }),
  metric(
    'summary',
    'nodejs_eventloop_utilization_summary',
    'Event loop utilization over the last minute: the share of time in which it was busy, from 0 to 1.',
    {
      advice: 'Near 1 for minutes, the process is overloaded: add processes.',
    },
  ),
  metric(
    'histogram',
    'nodejs_eventloop_utilization_histogram',
    'Event loop utilization (0 to 1) since the start, measured once per second.',
  ),
  metric(
    'gauge',
    'nodejs_active_resources',
    'Number of resources that keep the event loop alive (connections, timers, threads), by type.',
    {
      labelNames: ['type'],
    },
  ),
  metric(
    'gauge',
    'nodejs_active_resources_total',
    'Number of resources that keep the event loop alive, of all types.',
    { advice: RISING },
  ),
  metric('gauge', 'nodejs_active_handles', 'Number of open handles of libuv (connections, servers), by type.', {
    labelNames: ['type'],
  }),
  metric('gauge', 'nodejs_active_handles_total', 'Number of open handles of libuv, of all types.'),
  metric('gauge', 'nodejs_active_requests', 'Number of requests of libuv in progress (files, DNS), by type.', {
    labelNames: ['type'],
  }),
  metric('gauge', 'nodejs_active_requests_total', 'Number of requests of libuv in progress, of all types.'),
  metric('gauge', 'nodejs_heap_size_total_bytes', 'Reserved heap of JavaScript, in bytes.'),
  metric('gauge', 'nodejs_heap_size_used_bytes', 'Used heap of JavaScript, in bytes.', { advice: RISING }),
  metric(
    'gauge',
    'nodejs_external_memory_bytes',
    'Memory that JavaScript holds outside the heap, such as bodies of requests, in bytes.',
  ),
  metric('gauge', 'nodejs_heap_space_size_total_bytes', 'Reserved heap in bytes, by space of V8.', {
    labelNames: ['space'],
  }),
  metric('gauge', 'nodejs_heap_space_size_used_bytes', 'Used heap in bytes, by space of V8.', {
    labelNames: ['space'],
  }),
  metric('gauge', 'nodejs_heap_space_size_available_bytes', 'Free heap in bytes, by space of V8.', {
    labelNames: ['space'],
  }),
  metric(
    'gauge',
    'nodejs_version_info',
    'Version of Node.js in the labels version, major, minor and patch; the value is always 1.',
    {
      labelNames: ['version', 'major', 'minor', 'patch'],
    },
  ),
  metric(
    'histogram',
    'nodejs_gc_duration_seconds',
    'Duration of garbage collections in seconds, by kind (major, minor, incremental, weakcb).',
    {
      labelNames: ['kind'],
      advice:
        'Many of kind `major` above 0.1 s: memory is nearly full. Lower `memory.budget_bytes`, or give the process more memory.',
    },
  ),
]
