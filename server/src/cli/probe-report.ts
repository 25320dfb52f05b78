import type { ModelListed } from '../pricing/configure-models.ts'
import type { Binding } from '../upstreams/bindings.ts'
import type { ProbedProtocol } from '../upstreams/probe/dialects.ts'
import type { Observation } from '../upstreams/probe/observe.ts'
import type { Findings, Trial } from '../upstreams/probe/probe.ts'
import { usdText } from '../upstreams/probe/spending.ts'
import { isCountOdd, type SizeVerdict } from '../upstreams/probe/verdicts.ts'

/** What operators read of a probe. Nothing that the vendor has written is in it but figures and a stop reason. */

export type Probed = {
  readonly model: string
  readonly route: ModelListed['routes'][number] & { readonly protocol: ProbedProtocol }
  readonly binding: Pick<Binding, 'id' | 'credential'>
  readonly findings: Findings
}

export function findingLines(measured: Probed): readonly string[] {
  const { model, route, binding, findings } = measured
  const rows = findings.trials.map((trial) => rowOf(trial, findings))
  return [
    `${model} as ${route.upstreamModel} at ${route.slot} (upstream ${binding.id}), in the protocol ${route.protocol}:`,
    ...tableOf([['experiment', 'sent', 'received', 'verdict', 'USD'], ...rows]),
    ...findings.unaffordable.map(({ name }) => `  ${name}: skipped, because it could exceed the budget`),
    `Profile: ${profileText(measured)}.`,
    ...warningsOf(findings),
  ]
}

function rowOf({ experiment, seen, spending }: Trial, findings: Findings): readonly string[] {
  return [
    experiment.name,
    experiment.sent,
    cameText(seen),
    verdictOf(experiment.name, findings),
    usdText(spending.known),
  ]
}

function cameText(seen: Observation): string {
  const { status, isStream, bytes, text, stop, counts, reported } = seen
  if (status >= 400) return `status ${status}`
  const parts = [
    `${bytes} bytes${isStream ? ' of a stream' : ''}`,
    `${Buffer.byteLength(text)} bytes of text`,
    ...(typeof stop === 'string' ? [`stop ${stopText(stop)}`] : []),
    reported.output === undefined ? 'output not reported' : `${reported.output} tokens out`,
    ...((counts?.reasoning ?? 0) > 0 ? [`reasoning ${counts?.reasoning}`] : []),
  ]
  return parts.join(', ')
}

/** A vendor's own word, as far as it is one. */
function stopText(stop: string): string {
  return /^[A-Za-z_]{1,32}$/.test(stop) ? stop : 'unknown'
}

function verdictOf(name: string, { limits, casing, reasoning, onAbort, size }: Findings): string {
  const limit = limits.find(({ member }) => name === `limit ${member}`)
  if (limit !== undefined) return limit.verdict ?? 'unclear'
  if (name === 'case') return CASING[casing ?? 'unclear']
  if (name === 'reasoning') return reasoning === undefined ? 'unclear' : reasoningText(reasoning)
  if (name === 'abort')
    return onAbort === 'no stream' ? 'no stream received' : `usage at disconnect: ${onAbort ?? 'nothing'}`
  return size === undefined ? 'unreadable' : sizeText(size)
}

const CASING = {
  folds: 'accepts names in any case',
  exact: 'accepts names as written only',
  refused: 'refuses unknown names',
  unclear: 'unclear',
}

function reasoningText({ counted, hasSome }: NonNullable<Findings['reasoning']>): string {
  if (counted === 'apart') return 'apart from the output'
  return hasSome ? 'within the output' : 'none seen'
}

function sizeText(size: SizeVerdict): string {
  const { isLarge, bytesPerToken } = size
  const perToken = bytesPerToken === undefined ? 'no tokens reported' : `${bytesPerToken.toFixed(1)} bytes per token`
  return `${isLarge ? 'large reply' : 'ordinary size'}, ${perToken}${isCountOdd(size) ? ' (odd)' : ''}`
}

/** What is not measured is said to be so, and stays. */
function profileText({ route: { profile: before }, findings }: Probed): string {
  const { outputLimit, reasoning } = findings.profile
  const limit = outputLimit === undefined ? `${before.outputLimit ?? 'none'} (not measured)` : (outputLimit ?? 'none')
  const counted = reasoning ?? `${before.reasoning} (not measured)`
  const abort = `${abortText(before.abort)} (unchanged: whether a disconnect stops billing cannot be measured from outside)`
  return `output limit ${limit}, reasoning ${counted}, on abort ${abort}`
}

function abortText(abort: 'stops' | 'runs_on'): string {
  return abort === 'stops' ? 'stops' : 'runs-on'
}

function warningsOf({ limits, casing, size, stopped }: Findings): readonly string[] {
  const isUseless = ({ verdict }: Findings['limits'][number]) => verdict === 'ignored' || verdict === 'refused'
  const isUnbounded = stopped === undefined && limits.every(isUseless)
  return [
    ...(isUnbounded
      ? [
          'Warning: no output limit works here. Streams are cut at their limit, but an answer without streaming can cost more than its hold.',
        ]
      : []),
    ...(casing === 'folds'
      ? ['It accepts names in any case. The gateway refuses such names, so nothing has to be set.']
      : []),
    ...(size?.isLarge === true
      ? [
          `Warning: replies are large: ${size.bytes} bytes for one of a few hundred tokens. Plan memory and traffic for that.`,
        ]
      : []),
    ...(size !== undefined && isCountOdd(size)
      ? ['Warning: the tokens that it reports do not match the text that it sends. Compare with its invoice.']
      : []),
  ]
}

/** What writes the same with `models route`, as one would type it. */
export function commandFor({ model, route, findings: { profile } }: Probed): string {
  const { outputLimit, reasoning } = profile
  return [
    ...['farebox models route', quoted(model), '--slot', route.slot, '--protocol', route.protocol],
    ...['--upstream-model', quoted(route.upstreamModel)],
    ...(outputLimit === undefined ? [] : ['--output-limit', outputLimit ?? 'none']),
    ...(reasoning === undefined ? [] : ['--reasoning', reasoning]),
    ...(route.enabled ? [] : ['--off']),
  ].join(' ')
}

function quoted(text: string): string {
  return /^[A-Za-z0-9._:/@-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

function tableOf(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) => `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd())
}
