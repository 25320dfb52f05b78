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
        help: 'HTTP requests that have ended, by family of routes (data, messages, gemini, models, health and others), HTTP method and status.',
        labelNames: ['family', 'method', 'status'],
        advice:
          'Alert on the share of `status` 5xx. The `status` is `aborted` where the caller disconnected before the answer began.',
      }),
    ),
    requestSeconds: new Histogram(
      told({
        name: 'farebox_http_request_seconds',
        help: "Duration of HTTP requests in seconds, from the end of the request's headers to the last byte of its answer, by family of routes.",
        labelNames: ['family'],
        buckets: LATENCY_SECONDS,
        advice:
          "Most of it is the upstream's time. If all families are slow, look at `nodejs_eventloop_lag_p99_seconds` and at PostgreSQL.",
      }),
    ),
    requestsOpen: new Gauge(
      told({
        name: 'farebox_http_requests_open',
        help: 'HTTP requests that are being answered now, streams included.',
        advice:
          'If it keeps growing, upstreams are slow: look at `farebox_upstream_breaker`. If they are not, add processes.',
      }),
    ),
    faults: new Counter(
      told({
        name: 'farebox_faults_total',
        help: 'Requests that ended with an error of the gateway itself, by its code. Errors of upstreams that are passed on are not counted.',
        labelNames: ['code'],
        advice:
          '[errors.md](errors.md) explains each code. Alert on `internal_error`, `overloaded`, `not_configured` and `upstream_account`: only you can fix their causes.',
      }),
    ),
    refusedCallsNotKept: new Counter(
      told({
        name: 'farebox_refused_calls_not_kept_total',
        help: 'Refused calls that nobody can look up, by reason: over_limit (more than 200 of a workspace and minute), no_room (more at once than this process keeps in memory), not_written (PostgreSQL did not take them). They are counted by key and reason all the same.',
        labelNames: ['reason'],
        advice:
          'With `not_written`, look at PostgreSQL. With `over_limit`, somebody repeats calls that are refused: `farebox keys refusals <key>` says how often and why.',
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
        help: 'Cache misses: rows that had to be read from PostgreSQL, by cache (keys, workspaces, tokens, grants, models, prices, upstreams and others).',
        labelNames: ['cache'],
        advice:
          'If it is high while there are few requests, somebody tries unknown keys, or the change log is not read: look at `farebox_change_log_lag_seconds`.',
      }),
    ),
    changeLagSeconds: new Gauge(
      told({
        name: 'farebox_change_log_lag_seconds',
        help: 'Seconds since this process last read the change log to its end. The change log tells processes of changed keys, prices and upstreams.',
        advice:
          'Above 10, this process may still use old keys, prices and upstreams. Look at PostgreSQL, and at the log of the process.',
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
        help: 'Overrun in USD: what upstreams cost beyond what was charged, by operation. It is rounded; the ledger has it exactly.',
        labelNames: ['operation'],
        advice:
          'An upstream uses more than calls are priced for. Measure it (`farebox upstreams probe`), and correct the limits and prices of its models.',
      }),
    ),
    lossUsd: new Counter(
      told({
        name: 'farebox_loss_usd_total',
        help: 'The same overrun in USD, by kind of evidence: reported (the upstream reported more than was held), unreadable (it delivered without usage that can be read), presumed (only possible; it counts towards no ceiling).',
        labelNames: ['kind'],
        advice: 'Run `farebox losses`: it names route and account ([hostile-upstreams.md](hostile-upstreams.md)).',
      }),
    ),
    lossCeilingsReached: new Gauge(
      told({
        name: 'farebox_loss_ceilings_reached',
        help: 'Loss ceilings that are reached now, by scope (account: of one account at a route; route: of a route for all) and mode (live or test). Alert above 0 in mode live.',
        labelNames: ['scope', 'mode'],
        advice:
          'Calls are refused. `farebox losses` names the route. Fix its cause, then run `farebox losses release`.',
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
        help: 'Streams that have ended, by how they ended: complete, caller_left (disconnected), upstream_failed, over_limit (more output than asked for), hold_spent (no money left to hold) or not_settled.',
        labelNames: ['how'],
        advice:
          'Many `upstream_failed`: see `farebox_upstream_failures_total` for the reason. Any `not_settled`: look at PostgreSQL, and run `farebox ledger unsettled`.',
      }),
    ),
    upstreamFailures: new Counter(
      told({
        name: 'farebox_upstream_failures_total',
        help: 'Requests to upstreams without a valid answer, by upstream, reason (connect, dns, tls, headers_timeout, reset and others) and certainty: not_sent, or unknown where the upstream may have carried them out.',
        labelNames: ['upstream', 'reason', 'certainty'],
        advice:
          'The reason says where to look: `dns`, `connect` and `tls` at the network, timeouts and `reset` at the provider; `breaker` is the circuit breaker. With `unknown`, the caller pays nothing, and what the provider bills is your loss.',
      }),
    ),
    upstreamRefusals: new Counter(
      told({
        name: 'farebox_upstream_refusals_total',
        help: 'Answers of upstreams that refuse us and not the caller (401, 402, 403, 404, 405), by upstream and status, also where another upstream then answered the call.',
        labelNames: ['upstream', 'status'],
        advice:
          '401 to 403: the credential or our account there. 404 and 405: the base URL or the name of the model. The log names upstream, status and path; `farebox upstreams list`.',
      }),
    ),
    upstreamBreakers: new Gauge(
      told({
        name: 'farebox_upstream_breaker',
        help: 'State of the circuit breaker of each upstream, by its name (slot and host) and id: 0 closed (it gets requests), 1 half-open (it is tried again), 2 open (it gets none).',
        labelNames: ['upstream', 'id'],
        advice:
          'At 2 the upstream has failed call after call. Ask its provider, or turn it off: `farebox upstreams off <id>`.',
      }),
    ),
    taskPolls: new Counter(
      told({
        name: 'farebox_task_polls_total',
        help: 'Polls of tasks at upstreams, by slot and by the state that the upstream told (`nothing` if it told none).',
        labelNames: ['slot', 'told'],
        advice:
          'With a high share of `nothing`, the upstream does not know its tasks, or refuses the polls: run `farebox tasks status`.',
      }),
    ),
    taskPollLagSeconds: new Gauge(
      told({
        name: 'farebox_task_poll_lag_seconds',
        help: 'Seconds by which the most overdue poll of a task is late, by slot of upstreams.',
        labelNames: ['slot'],
        advice:
          'If it grows, raise `--polls-per-second` of the upstream as far as its provider allows, or add processes with the role `worker`.',
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
        help: 'Requests to URLs that customers or OAuth clients gave, by outcome: answered, or the reason why not (unreachable, timeout, redirect and others).',
        labelNames: ['outcome'],
        advice:
          'Many `unreachable`: an address is down, or somebody tries to reach your internal network. The log has the addresses ([outbound.md](outbound.md)).',
      }),
    ),
    outboxDeliveries: new Counter(
      told({
        name: 'farebox_outbox_deliveries_total',
        help: 'Attempts to deliver a message of the outbox, by kind of message and outcome: delivered, failed (it is tried again), or died (it was the last attempt).',
        labelNames: ['kind', 'outcome'],
        advice: 'If many are `failed`, `farebox outbox` has the reason ([outbox.md](outbox.md)).',
      }),
    ),
    outboxWaiting: new Gauge(
      told({
        name: 'farebox_outbox_waiting',
        help: 'Messages in the outbox that wait for delivery, by kind of message.',
        labelNames: ['kind'],
        advice:
          'If it grows, nothing is delivered: check that a process has the role `worker`, and that the receiver (such as the mail server) answers.',
      }),
    ),
    outboxOldestSeconds: new Gauge(
      told({
        name: 'farebox_outbox_oldest_seconds',
        help: 'Age in seconds of the oldest message that waits for delivery, by kind of message.',
        labelNames: ['kind'],
        advice: 'Alert above the delay that you accept. Check that a process has the role `worker`.',
      }),
    ),
    outboxDead: new Gauge(
      told({
        name: 'farebox_outbox_dead',
        help: 'Dead letters: messages whose delivery was given up after the last attempt, by kind of message. Alert above 0: see farebox outbox.',
        labelNames: ['kind'],
        advice: '`farebox outbox` has the reason. Fix it, then run `farebox outbox retry`.',
      }),
    ),
    usageTailRows: new Gauge(
      told({
        name: 'farebox_usage_tail_rows',
        help: 'Rows of usage that are not added up into sums yet. Every usage report reads all of them.',
        advice:
          'The calls of 20 seconds are normal. If it grows, check that a process has the role `worker`, and look for the job `usage` in its log.',
      }),
    ),
    usageTailOldestSeconds: new Gauge(
      told({
        name: 'farebox_usage_tail_oldest_seconds',
        help: 'Age in seconds of the oldest row of usage that is not added up yet.',
        advice: 'Up to 20 are normal. Alert above 60. Reports stay correct, but get slower.',
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
      help: 'Memory in bytes that is reserved for bodies of requests, replies of upstreams and answers that callers have not read yet.',
      advice:
        'Near `memory.budget_bytes`, calls wait. Raise the budget and the memory of the machine, or add processes.',
    },
    (now) => now.reservedBytes,
  )
  gauge(
    {
      name: 'farebox_memory_reserved_large_bytes',
      help: 'The part of farebox_memory_reserved_bytes, in bytes, that is reserved for calls that need more than 1 MiB each.',
      advice: 'Such calls share three quarters of the budget. Lower `http.model_body_bytes` if you do not want them.',
    },
    (now) => now.largeBytes,
  )
  gauge(
    {
      name: 'farebox_memory_waiting',
      help: 'Calls that wait for a reservation of memory now.',
      advice: 'If it stays above 0, raise `memory.budget_bytes`, or add processes.',
    },
    (now) => now.waiting,
  )
  counter(
    {
      name: 'farebox_memory_waits_total',
      help: 'Reservations of memory that had to wait, whether they got it in the end or not.',
      advice: 'An early sign of refusals: raise `memory.budget_bytes` before they come.',
    },
    (now) => now.waits,
  )
  counter(
    {
      name: 'farebox_memory_refusals_total',
      help: 'Reservations of memory that were refused, because there was no room in time.',
      advice:
        'Calls that had not begun got 503 `overloaded` and cost nothing; running streams were cut. Raise `memory.budget_bytes`, or add processes.',
    },
    (now) => now.refusals,
  )
}
