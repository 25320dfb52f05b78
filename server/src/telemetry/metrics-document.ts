import { asMarkdown } from '../kernel/markdown.ts'
import { createMetrics } from './metrics.ts'
import { RUNTIME_METRICS } from './runtime-metrics.ts'

/** What the document has of a metric, whoever declares it. */
export type DocumentedMetric = {
  readonly name: string
  readonly type: string
  readonly labelNames: readonly string[]
  readonly help: string
  readonly advice: string
}

/** Every metric that a process has: ours as they are declared, and those of Node.js. */
export function documentedMetrics(): {
  readonly own: readonly DocumentedMetric[]
  readonly runtime: readonly DocumentedMetric[]
} {
  const metrics = createMetrics()
  metrics.watchMemory({ figures: () => NO_MEMORY })
  return { own: metrics.declared(), runtime: RUNTIME_METRICS }
}

const NO_MEMORY = { reservedBytes: 0, largeBytes: 0, leases: 0, waiting: 0, waits: 0, refusals: 0 }

/** Every metric for operators, as a page of Markdown. */
export function metricsDocument({ own, runtime } = documentedMetrics()): string {
  return `# Metrics

Written by \`node scripts/metrics.ts\` from where metrics are declared: ${own.length} of Farebox and ${runtime.length} of its process.

- \`GET /metrics\` on the operators' listener (\`listen.admin\`, 127.0.0.1:8709) has them in the text format of Prometheus, without a credential.
  A process needs the role \`admin\` for it. Where Prometheus asks by a name with dots, list it in \`http.admin_hosts\`
  ([configuration.md](configuration.md#httpadmin_hosts)).
- Each process counts for itself, from its start: ask every one of them, and add counters up. A counter that falls was a restart. Gauges of what is in
  PostgreSQL (the outbox, lags, loss ceilings) are the same in every process: take the largest.
- A histogram has \`_bucket\`, \`_sum\` and \`_count\` behind its name.
- **Alert** on \`farebox_loss_ceilings_reached{mode="live"}\` and \`farebox_outbox_dead\` above 0, on \`farebox_upstream_breaker\` at 2 for minutes, on
  \`farebox_change_log_lag_seconds\` above 10, and on the share of 5xx in \`farebox_http_requests_total\`. Ask \`/readyz\` of every listener too.

## Farebox

${own.map(metricText).join('\n')}
## Process

Metrics of Node.js and the operating system. Those of file descriptors, the data segment and virtual memory exist only on Linux.

${runtime.map(metricText).join('\n')}`
}

function metricText({ name, type, labelNames, help, advice }: DocumentedMetric): string {
  const labels = labelNames.length === 0 ? 'none' : labelNames.map((label) => `\`${label}\``).join(', ')
  const next = advice === '' ? '' : `\n- What to do: ${asMarkdown(advice)}`
  return `### ${name}\n\n${asMarkdown(help)}\n\n- Type: ${type}\n- Labels: ${labels}${next}\n`
}
