import type { Secret } from '../../kernel/secret.ts'
import { createScrubber } from '../../telemetry/scrubber.ts'
import type { ProbedProtocol } from './dialects.ts'
import type { Experiment } from './experiments.ts'
import { headersOf, type RawReply } from './observe.ts'
import type { Trial } from './probe.ts'

/** A request and its answer as they went over the wire, without what says who asked. The sandbox can replay it. */
export type Recording = {
  readonly format: 1
  readonly protocol: ProbedProtocol
  readonly experiment: string
  readonly request: {
    readonly method: 'POST'
    /** Below the base address, which is not recorded. */
    readonly path: string
    readonly headers: Readonly<Record<string, string>>
    readonly body: string
  }
  readonly reply: {
    readonly status: number
    readonly headers: Readonly<Record<string, string>>
    readonly pieces: readonly { readonly at_ms: number; readonly text: string }[]
    /** Whether it came to its end, or we left after the last of these. */
    readonly end: RawReply['end']
  }
}

/** All others may tell of our account: its limits, its organisation, its requests. */
const KEPT_HEADERS = ['content-type', 'retry-after']

export function recordingOf(
  protocol: ProbedProtocol,
  { experiment, seen }: Trial,
  credential: Secret | null,
): Recording {
  const scrub = createScrubber(credential === null ? [] : [credential])
  const redact = (text: string) => redacted(scrub(text))
  return {
    format: 1,
    protocol,
    experiment: experiment.name,
    request: requestOf(protocol, experiment),
    reply: {
      status: seen.status,
      headers: keptHeaders(seen.reply.headers, redact),
      pieces: piecesOf(seen.reply, seen.isStream, redact),
      end: seen.reply.end,
    },
  }
}

function requestOf(protocol: ProbedProtocol, experiment: Experiment): Recording['request'] {
  return { method: 'POST', path: experiment.target, headers: headersOf(protocol, experiment), body: experiment.body }
}

function keptHeaders(headers: RawReply['headers'], redact: (text: string) => string): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const name of KEPT_HEADERS) {
    const value = headers[name]
    if (value !== undefined) kept[name] = redact(value)
  }
  return kept
}

/** An answer in one piece is put together before it is read: what is to be redacted may have come in two. */
function piecesOf({ pieces }: RawReply, isStream: boolean, redact: (text: string) => string) {
  if (isStream) return pieces.map(({ atMs, bytes }) => ({ at_ms: atMs, text: redact(bytes.toString('utf8')) }))
  const text = redact(Buffer.concat(pieces.map(({ bytes }) => bytes)).toString('utf8'))
  return text === '' ? [] : [{ at_ms: pieces.at(-1)?.atMs ?? 0, text }]
}

/** Members whose texts name a request, an account or a machine of the vendor. */
const IDENTIFYING = [
  ...['id', 'request_id', 'requestid', 'responseid', 'response_id', 'system_fingerprint', 'fingerprint', 'trace_id'],
  ...['organization', 'organization_id', 'organisation', 'org', 'org_id', 'project', 'project_id', 'account'],
  ...['account_id', 'workspace', 'workspace_id', 'user', 'user_id', 'tenant', 'tenant_id', 'customer', 'customer_id'],
  ...['email', 'signature', 'thoughtsignature', 'thought_signature', 'api_key', 'key', 'authorization', 'x-api-key'],
]
const MEMBER = new RegExp(`("(?:${IDENTIFYING.join('|')})"\\s*:\\s*)"(?:[^"\\\\]|\\\\.)*"`, 'gi')
/** Ids as vendors write them in the middle of a text, such as that of an error. */
const IDS =
  /\b(?:org|proj|acct|req|user|ws|chatcmpl|msg|sk|rk|pk|key)[-_][A-Za-z0-9_-]{6,}|[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+/g

function redacted(text: string): string {
  return text.replace(MEMBER, '$1"redacted"').replace(IDS, 'redacted')
}
