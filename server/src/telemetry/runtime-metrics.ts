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

const ONE_CORE = 'Near 1 second in a second, the process uses all of its core: add processes.'
const RISING = 'Where it rises for hours at the same load, memory leaks: restart the process, and report it.'

/**
 * What the client for Prometheus measures by itself. It stands here because the set differs by operating system, and the document must
 * not; a test compares it with what a process has.
 */
export const RUNTIME_METRICS: readonly RuntimeMetric[] = [
  metric('counter', 'process_cpu_user_seconds_total', 'CPU time in the program itself, in seconds.'),
  metric('counter', 'process_cpu_system_seconds_total', 'CPU time in the operating system for it, in seconds.'),
  metric('counter', 'process_cpu_seconds_total', 'CPU time, both together, in seconds.', { advice: ONE_CORE }),
  metric('gauge', 'process_start_time_seconds', 'When the process started, in seconds since 1970.'),
  metric('gauge', 'process_resident_memory_bytes', 'Memory that the process has (RSS).', {
    advice: `The process needs \`memory.budget_bytes\` and about 400 MiB. ${RISING}`,
  }),
  metric('gauge', 'process_virtual_memory_bytes', 'Address space of the process. Most of it is never used.'),
  metric('gauge', 'process_heap_bytes', 'Data segment of the process.'),
  metric('gauge', 'process_open_fds', 'Open file descriptors: connections and files.', {
    advice: 'Near `process_max_fds`, raise the limit of open files (`ulimit -n`).',
  }),
  metric('gauge', 'process_max_fds', 'Limit of open file descriptors.'),
  lag('', 'Event loop delay, as it was just measured.'),
  lag('min_', 'Least event loop delay since the last scrape.'),
  lag('max_', 'Largest event loop delay since the last scrape.'),
  lag('mean_', 'Mean of the event loop delay.'),
  lag('stddev_', 'Standard deviation of the event loop delay.'),
  lag('p50_', 'Event loop delay, 50th percentile.'),
  lag('p90_', 'Event loop delay, 90th percentile.'),
  lag('p99_', 'Event loop delay, 99th percentile.', {
    advice: 'Above 0.1 for minutes, the process has too much to do: add processes.',
  }),
  metric(
    'summary',
    'nodejs_eventloop_utilization_summary',
    'Event loop utilization: the share of time in which it had something to do, over the last minute.',
    {
      advice: 'Near 1 for minutes, the process has too much to do: add processes.',
    },
  ),
  metric(
    'histogram',
    'nodejs_eventloop_utilization_histogram',
    'Event loop utilization since the start, measured once a second.',
  ),
  metric(
    'gauge',
    'nodejs_active_resources',
    'What keeps the event loop alive (connections, timers, threads), by type.',
    {
      labelNames: ['type'],
    },
  ),
  metric('gauge', 'nodejs_active_resources_total', 'What keeps the event loop alive, in all.', { advice: RISING }),
  metric('gauge', 'nodejs_active_handles', 'Open handles of libuv (connections, servers), by type.', {
    labelNames: ['type'],
  }),
  metric('gauge', 'nodejs_active_handles_total', 'Open handles of libuv, in all.'),
  metric('gauge', 'nodejs_active_requests', 'Requests of libuv under way (files, DNS), by type.', {
    labelNames: ['type'],
  }),
  metric('gauge', 'nodejs_active_requests_total', 'Requests of libuv under way, in all.'),
  metric('gauge', 'nodejs_heap_size_total_bytes', 'Heap of JavaScript that is reserved.'),
  metric('gauge', 'nodejs_heap_size_used_bytes', 'Heap of JavaScript that is used.', { advice: RISING }),
  metric(
    'gauge',
    'nodejs_external_memory_bytes',
    'Memory beside the heap that JavaScript holds, such as bodies of requests.',
  ),
  metric('gauge', 'nodejs_heap_space_size_total_bytes', 'Heap that is reserved, by space.', { labelNames: ['space'] }),
  metric('gauge', 'nodejs_heap_space_size_used_bytes', 'Heap that is used, by space.', { labelNames: ['space'] }),
  metric('gauge', 'nodejs_heap_space_size_available_bytes', 'Heap that is free, by space.', { labelNames: ['space'] }),
  metric('gauge', 'nodejs_version_info', 'Version of Node.js, in labels; the value is 1.', {
    labelNames: ['version', 'major', 'minor', 'patch'],
  }),
  metric(
    'histogram',
    'nodejs_gc_duration_seconds',
    'Garbage collection: how long each took, by kind (major, minor, incremental, weakcb).',
    {
      labelNames: ['kind'],
      advice:
        'Many `major` ones above 0.1 s: the memory is nearly full. Lower `memory.budget_bytes`, or give the process more.',
    },
  ),
]
