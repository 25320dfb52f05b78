import { Counter, collectDefaultMetrics, Gauge, Histogram, type MetricType, Registry } from '@prometheus-io/client'
import type { MemoryBudget, MemoryFigures } from '../kernel/memory-budget.ts'

/** Every metric that the service has, in one place; whoever measures calls these names. */
export type Metrics = ReturnType<typeof createMetrics>

const LATENCY_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

/** Ten times as often, as it would be otherwise, it takes a tenth of all that an idle process takes. */
const UTILIZATION_EVERY_MS = 1_000

/** What people are told of a metric. */
type Words = {
  readonly name: string
  readonly help: string
  /** What to do when it is high; docs/metrics.md is written from it. */
  readonly advice: string
  readonly labelNames?: readonly string[]
  readonly buckets?: number[]
}

type Tell = <const Given extends Words>(words: Given) => Omit<Given, 'advice'> & { readonly registers: Registry[] }

export type DeclaredMetric = Required<Omit<Words, 'buckets'>> & { readonly type: MetricType }

export function createMetrics() {
  const registry = new Registry()
  // Brings process CPU and memory, garbage collection and event-loop delay.
  collectDefaultMetrics({ register: registry, eventLoopUtilizationTimeout: UTILIZATION_EVERY_MS })
  const words = new Map<string, Words>()

  const told: Tell = (given) => {
    const { advice: _, ...config } = given
    words.set(given.name, given)
    return { ...config, registers: [registry] }
  }

  return {
    /** Every metric of ours, for people, in the order in which they were declared. */
    declared: (): readonly DeclaredMetric[] =>
      registry.getMetricsAsArray().flatMap(({ name, type }) => {
        const own = words.get(name)
        return own === undefined ? [] : [{ ...own, type, labelNames: own.labelNames ?? [] }]
      }),
    /** Figures that somebody else keeps, read whenever metrics are asked for. */
    watchMemory: (memory: Pick<MemoryBudget, 'figures'>) => watchMemory(memory, told),
    expose: () => registry.metrics(),
    contentType: registry.contentType,
    ...ofRequests(told),
    ...ofStorage(told),
    ...ofLoss(told),
    ...ofUpstreams(told),
    ...ofMessages(told),
  }
}

/** What callers ask, and what they are told. */
function ofRequests(told: Tell) {
  return {
    requests: new Counter(
      told({
        name: 'farebox_http_requests_total',
        help: 'Answered requests by route family, method and status.',
        labelNames: ['family', 'method', 'status'],
        advice:
          'Alert on the share of `status` 5xx. A `status` of `aborted` is a caller who left before the answer began.',
      }),
    ),
    requestSeconds: new Histogram(
      told({
        name: 'farebox_http_request_seconds',
        help: "Time from the end of a request's headers to the last byte of its answer.",
        labelNames: ['family'],
        buckets: LATENCY_SECONDS,
        advice:
          "Most of it is the upstream's time. Where all families are slow, look at `nodejs_eventloop_lag_p99_seconds` and PostgreSQL.",
      }),
    ),
    requestsOpen: new Gauge(
      told({
        name: 'farebox_http_requests_open',
        help: 'Requests that are being answered now.',
        advice:
          'Where it grows without end, upstreams are slow: look at `farebox_upstream_breaker`. Add processes where they are not.',
      }),
    ),
    faults: new Counter(
      told({
        name: 'farebox_faults_total',
        help: 'Refusals and failures of ours by code.',
        labelNames: ['code'],
        advice:
          '[errors.md](errors.md) has each code. Alert on `internal_error`, `overloaded`, `not_configured` and `upstream_account`: those are yours to mend.',
      }),
    ),
  }
}

/** How this process follows the database. */
function ofStorage(told: Tell) {
  return {
    cacheLoads: new Counter(
      told({
        name: 'farebox_cache_loads_total',
        help: 'Look-ups that a cache had to make in PostgreSQL, by cache.',
        labelNames: ['cache'],
        advice:
          'A high rate beside few requests is somebody who tries unknown keys, or a change log that is not read: look at `farebox_change_log_lag_seconds`.',
      }),
    ),
    changeLagSeconds: new Gauge(
      told({
        name: 'farebox_change_log_lag_seconds',
        help: 'Seconds since the change log was last read to its end.',
        advice:
          'Above some seconds, this process may act on old keys, prices and upstreams. Look at PostgreSQL, and at the log.',
      }),
    ),
  }
}

/** What upstreams cost beyond what was charged. */
function ofLoss(told: Tell) {
  return {
    overrunUsd: new Counter(
      told({
        name: 'farebox_overrun_usd_total',
        help: 'What upstreams cost beyond what was charged, in USD as far as a metric can say, by operation.',
        labelNames: ['operation'],
        advice:
          'The upstream uses more than calls are priced for. Measure it (`farebox upstreams probe`), and correct the limits and prices of its models.',
      }),
    ),
    lossUsd: new Counter(
      told({
        name: 'farebox_loss_usd_total',
        help: 'What upstreams cost beyond what was charged, in USD, by evidence: reported beyond the hold, delivered and unreadable, or presumed, which counts towards no ceiling.',
        labelNames: ['kind'],
        advice: 'Look at `farebox losses`: it names route and account ([hostile-upstreams.md](hostile-upstreams.md)).',
      }),
    ),
    lossCeilingsReached: new Gauge(
      told({
        name: 'farebox_loss_ceilings_reached',
        help: 'Ceilings on loss that are reached, by scope: an account at a route, or a route for everybody. Alert above 0 in mode live.',
        labelNames: ['scope', 'mode'],
        advice: 'Calls are refused. `farebox losses` names the route; mend it, then `farebox losses release`.',
      }),
    ),
  }
}

/** How upstreams answer. */
function ofUpstreams(told: Tell) {
  return {
    streams: new Counter(
      told({
        name: 'farebox_streams_total',
        help: 'Streams by how they ended: complete, caller_left, upstream_failed, over_limit, hold_spent or not_settled.',
        labelNames: ['how'],
        advice:
          'Many `upstream_failed`: look at that upstream. Any `not_settled`: look at PostgreSQL, and at `farebox ledger unsettled`.',
      }),
    ),
    upstreamFailures: new Counter(
      told({
        name: 'farebox_upstream_failures_total',
        help: 'Requests to upstreams that got no proper answer, by reason and by whether they may have been carried out.',
        labelNames: ['reason', 'certainty'],
        advice:
          'The reason says where to look: `dns`, `connect` and `tls` at the network, timeouts and `reset` at the vendor. Where they may have been carried out, the call is voided for its caller, and what the vendor bills is a loss of the operator.',
      }),
    ),
    upstreamBreakers: new Gauge(
      told({
        name: 'farebox_upstream_breaker',
        help: 'Whether an upstream is asked: 0 yes, 1 tried again, 2 no.',
        labelNames: ['upstream'],
        advice: 'The upstream fails call after call. Ask its vendor, or take it out: `farebox upstreams off <id>`.',
      }),
    ),
    taskPolls: new Counter(
      told({
        name: 'farebox_task_polls_total',
        help: 'Questions to upstreams about tasks, by slot and by the state that was told; nothing where none was.',
        labelNames: ['slot', 'told'],
        advice:
          'A high share of nothing told is an upstream that does not know its tasks, or refuses our questions: `farebox tasks status`.',
      }),
    ),
    taskPollLagSeconds: new Gauge(
      told({
        name: 'farebox_task_poll_lag_seconds',
        help: 'How overdue the question about a task is that has waited longest, by slot.',
        labelNames: ['slot'],
        advice:
          'Raise `--polls-per-second` of the upstream as far as its vendor allows, or add processes with the role `worker`.',
      }),
    ),
  }
}

/** What others are told. */
function ofMessages(told: Tell) {
  return {
    outboundRequests: new Counter(
      told({
        name: 'farebox_outbound_requests_total',
        help: 'Requests to addresses that strangers gave, by outcome: answered, or why not.',
        labelNames: ['outcome'],
        advice:
          'Many `unreachable`: a receiver is down, or somebody tries to reach your network. The log has the addresses ([outbound.md](outbound.md)).',
      }),
    ),
    outboxDeliveries: new Counter(
      told({
        name: 'farebox_outbox_deliveries_total',
        help: 'Attempts to deliver a message, by kind and outcome: delivered, failed and tried again, or died.',
        labelNames: ['kind', 'outcome'],
        advice: 'A high share of `failed`: `farebox outbox` has the reason ([outbox.md](outbox.md)).',
      }),
    ),
    outboxWaiting: new Gauge(
      told({
        name: 'farebox_outbox_waiting',
        help: 'Messages that wait for delivery, by kind.',
        labelNames: ['kind'],
        advice:
          'Where it grows, nobody delivers: check that a process has the role `worker`, and that the receiver answers.',
      }),
    ),
    outboxOldestSeconds: new Gauge(
      told({
        name: 'farebox_outbox_oldest_seconds',
        help: 'Age of the oldest message that waits for delivery, by kind.',
        labelNames: ['kind'],
        advice: 'Alert above what you accept. Check that a process has the role `worker`.',
      }),
    ),
    outboxDead: new Gauge(
      told({
        name: 'farebox_outbox_dead',
        help: 'Messages whose delivery was given up, by kind. Alert above 0: see farebox outbox.',
        labelNames: ['kind'],
        advice: '`farebox outbox` has the reason; after you have mended it, `farebox outbox retry`.',
      }),
    ),
    usageTailRows: new Gauge(
      told({
        name: 'farebox_usage_tail_rows',
        help: 'Rows of usage that are not added up yet. Every report reads all of them.',
        advice:
          'Some thousands at the most. Where it grows, nobody adds up in time: check that a process has the role `worker`, and the log for the chore `usage`.',
      }),
    ),
    usageTailOldestSeconds: new Gauge(
      told({
        name: 'farebox_usage_tail_oldest_seconds',
        help: 'Age of the oldest usage that is not added up yet.',
        advice: 'A second or two as a rule. Alert above 60. Reports stay right, and get slower.',
      }),
    ),
  }
}

/** Kept as plain numbers where they change with every call: a metric would cost more than what it measures. */
function watchMemory(memory: Pick<MemoryBudget, 'figures'>, told: Tell): void {
  const gauge = (words: Words, read: (figures: MemoryFigures) => number) =>
    new Gauge({
      ...told(words),
      collect() {
        this.set(read(memory.figures()))
      },
    })
  const counter = (words: Words, read: (figures: MemoryFigures) => number) =>
    new Counter({
      ...told(words),
      collect() {
        this.reset()
        this.inc(read(memory.figures()))
      },
    })
  gauge(
    {
      name: 'farebox_memory_reserved_bytes',
      help: 'Memory reserved for requests, replies and unread answers.',
      advice:
        'Near `memory.budget_bytes`, calls wait: raise the budget with the memory of the machine, or add processes.',
    },
    (now) => now.reservedBytes,
  )
  gauge(
    {
      name: 'farebox_memory_reserved_large_bytes',
      help: 'Memory reserved for calls above 1 MiB, as a part of farebox_memory_reserved_bytes.',
      advice: 'They share three quarters of the budget. Lower `http.model_body_bytes` where such calls are not wanted.',
    },
    (now) => now.largeBytes,
  )
  gauge(
    {
      name: 'farebox_memory_waiting',
      help: 'Calls that wait for memory.',
      advice: 'Above 0 for long: as for `farebox_memory_refusals_total`.',
    },
    (now) => now.waiting,
  )
  counter(
    {
      name: 'farebox_memory_waits_total',
      help: 'Reservations of memory that had to wait.',
      advice: 'An early sign of refusals: raise `memory.budget_bytes` before they come.',
    },
    (now) => now.waits,
  )
  counter(
    {
      name: 'farebox_memory_refusals_total',
      help: 'Reservations of memory that got none.',
      advice:
        'Calls that had not begun got 503 `overloaded` and cost nothing; streams that ran broke off. Raise `memory.budget_bytes`, or add processes.',
    },
    (now) => now.refusals,
  )
}
