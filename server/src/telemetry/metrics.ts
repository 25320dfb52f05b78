import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from '@prometheus-io/client'
import type { MemoryBudget, MemoryFigures } from '../kernel/memory-budget.ts'

/** Every metric that the service has, in one place; whoever measures calls these names. */
export type Metrics = ReturnType<typeof createMetrics>

const LATENCY_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/** Ten times as often, as it would be otherwise, it takes a tenth of all that an idle process takes. */
const UTILIZATION_EVERY_MS = 1_000

export function createMetrics() {
  const registry = new Registry()
  // Brings process CPU and memory, garbage collection and event-loop delay.
  collectDefaultMetrics({ register: registry, eventLoopUtilizationTimeout: UTILIZATION_EVERY_MS })
  const registers = [registry]
  return {
    /** Figures that somebody else keeps, read whenever metrics are asked for. */
    watchMemory: (memory: Pick<MemoryBudget, 'figures'>) => watchMemory(memory, registers),
    expose: () => registry.metrics(),
    contentType: registry.contentType,
    requests: new Counter({
      name: 'farebox_http_requests_total',
      help: 'Answered requests by route family, method and status.',
      labelNames: ['family', 'method', 'status'] as const,
      registers,
    }),
    requestSeconds: new Histogram({
      name: 'farebox_http_request_seconds',
      help: "Time from the end of a request's headers to the last byte of its answer.",
      labelNames: ['family'] as const,
      buckets: LATENCY_SECONDS,
      registers,
    }),
    requestsOpen: new Gauge({
      name: 'farebox_http_requests_open',
      help: 'Requests that are being answered now.',
      registers,
    }),
    faults: new Counter({
      name: 'farebox_faults_total',
      help: 'Refusals and failures of ours by code.',
      labelNames: ['code'] as const,
      registers,
    }),
    cacheLoads: new Counter({
      name: 'farebox_cache_loads_total',
      help: 'Look-ups that a cache had to make in PostgreSQL, by cache.',
      labelNames: ['cache'] as const,
      registers,
    }),
    overrunUsd: new Counter({
      name: 'farebox_overrun_usd_total',
      help: 'What upstreams cost beyond what was charged, in USD as far as a metric can say, by operation.',
      labelNames: ['operation'] as const,
      registers,
    }),
    lossUsd: new Counter({
      name: 'farebox_loss_usd_total',
      help: 'The same in USD by evidence: reported beyond the hold, delivered and unreadable, or presumed, which counts towards no ceiling.',
      labelNames: ['kind'] as const,
      registers,
    }),
    lossCeilingsReached: new Gauge({
      name: 'farebox_loss_ceilings_reached',
      help: 'Ceilings on loss that are reached, by scope: an account at a route, or a route for everybody. Alert above 0 in mode live.',
      labelNames: ['scope', 'mode'] as const,
      registers,
    }),
    streams: new Counter({
      name: 'farebox_streams_total',
      help: 'Streams by how they ended: complete, caller_left, upstream_failed, over_limit or not_settled.',
      labelNames: ['how'] as const,
      registers,
    }),
    upstreamFailures: new Counter({
      name: 'farebox_upstream_failures_total',
      help: 'Requests to upstreams that got no proper answer, by reason and by whether they may have been carried out.',
      labelNames: ['reason', 'certainty'] as const,
      registers,
    }),
    upstreamBreakers: new Gauge({
      name: 'farebox_upstream_breaker',
      help: 'Whether an upstream is asked: 0 yes, 1 tried again, 2 no.',
      labelNames: ['upstream'] as const,
      registers,
    }),
    taskPolls: new Counter({
      name: 'farebox_task_polls_total',
      help: 'Questions to upstreams about tasks, by slot and by the state that was told; nothing where none was.',
      labelNames: ['slot', 'told'] as const,
      registers,
    }),
    taskPollLagSeconds: new Gauge({
      name: 'farebox_task_poll_lag_seconds',
      help: 'How overdue the question about a task is that has waited longest, by slot.',
      labelNames: ['slot'] as const,
      registers,
    }),
    outboundRequests: new Counter({
      name: 'farebox_outbound_requests_total',
      help: 'Requests to addresses that strangers gave, by outcome: answered, or why not.',
      labelNames: ['outcome'] as const,
      registers,
    }),
    outboxDeliveries: new Counter({
      name: 'farebox_outbox_deliveries_total',
      help: 'Attempts to deliver a message, by kind and outcome: delivered, failed and tried again, or died.',
      labelNames: ['kind', 'outcome'] as const,
      registers,
    }),
    outboxWaiting: new Gauge({
      name: 'farebox_outbox_waiting',
      help: 'Messages that wait for delivery, by kind.',
      labelNames: ['kind'] as const,
      registers,
    }),
    outboxOldestSeconds: new Gauge({
      name: 'farebox_outbox_oldest_seconds',
      help: 'Age of the oldest message that waits for delivery, by kind.',
      labelNames: ['kind'] as const,
      registers,
    }),
    outboxDead: new Gauge({
      name: 'farebox_outbox_dead',
      help: 'Messages whose delivery was given up, by kind. Alert above 0: see farebox outbox.',
      labelNames: ['kind'] as const,
      registers,
    }),
    changeLagSeconds: new Gauge({
      name: 'farebox_change_log_lag_seconds',
      help: 'Seconds since the change log was last read to its end.',
      registers,
    }),
  }
}

/** Kept as plain numbers where they change with every call: a metric would cost more than what it measures. */
function watchMemory(memory: Pick<MemoryBudget, 'figures'>, registers: Registry[]): void {
  const gauge = (name: string, help: string, read: (figures: MemoryFigures) => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read(memory.figures()))
      },
    })
  const counter = (name: string, help: string, read: (figures: MemoryFigures) => number) =>
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset()
        this.inc(read(memory.figures()))
      },
    })
  gauge(
    'farebox_memory_reserved_bytes',
    'Memory reserved for requests, replies and unread answers.',
    (now) => now.reservedBytes,
  )
  gauge('farebox_memory_reserved_large_bytes', 'Of that, what calls above 1 MiB have.', (now) => now.largeBytes)
  gauge('farebox_memory_waiting', 'Calls that wait for memory.', (now) => now.waiting)
  counter('farebox_memory_waits_total', 'Reservations of memory that had to wait.', (now) => now.waits)
  counter('farebox_memory_refusals_total', 'Reservations of memory that got none.', (now) => now.refusals)
}
