import type { IncomingMessage } from 'node:http'
import type { Bill } from './bill.ts'
import type { JsonObject } from './json.ts'
import { Ring } from './ring.ts'
import type { Credential } from './upstream.ts'

/**
 * `open` while it is answered; `left`: the client went away first; `cut`: the sandbox closed the connection before the
 * answer was whole; `refused`: the sandbox itself could not do what was asked, as with a directive that it does not know.
 */
export type Outcome = 'open' | 'answered' | 'hung' | 'reset' | 'cut' | 'left' | 'refused'

/** One request that the sandbox was asked, in the order of arrival. */
export type JournalEntry = {
  readonly n: number
  readonly at_ms: number
  readonly upstream: string | null
  /** The words of the deviant that was asked; none where the vendor is as its protocol says. */
  readonly deviant: readonly string[]
  readonly method: string
  readonly path: string
  readonly query: string
  readonly request_id: string | null
  /** Never the credential itself. */
  readonly credential: Credential | null
  /** Some headers with their values, and the names of all of them. */
  readonly headers: Readonly<Record<string, string>>
  readonly header_names: readonly string[]
  readonly body_bytes: number
  readonly body_sha256: string | null
  readonly directives: readonly string[]
  /** Null where no status line was sent. */
  readonly status: number | null
  /** Of a stream: of what has been sent of it. */
  readonly tokens: number | null
  /** The model that was asked, whether for a stream, and all input tokens that were reported; null where no model was. */
  readonly model: string | null
  readonly stream: boolean | null
  readonly input_tokens: number | null
  /** The figures of a model that were sent; of a stream, as far as it came. */
  readonly usage: JsonObject | null
  /** The video task that was made, asked about or to be canceled; null where there is none. */
  readonly task_id: string | null
  /** Whether the vendor would charge for it. */
  readonly billed: boolean
  /** What it would charge for, whatever it reported; null where it charges nothing. */
  readonly bill: Bill | null
  readonly outcome: Outcome
  readonly took_ms: number | null
}

/** The sandbox's own view of an entry, which it completes as the request goes on. */
export type OpenEntry = { -readonly [Key in keyof JournalEntry]: JournalEntry[Key] }

export type JournalPage = {
  readonly entries: readonly JournalEntry[]
  /** What to ask `since` for what comes after these. */
  readonly next: number
  /** How many from `since` on had fallen out already. */
  readonly lost: number
}

const ENTRIES_LIMIT = 200_000
const TEXT_LIMIT = 4096
const NAME_LISTS_LIMIT = 1000
const SHOWN_HEADERS = [
  'content-type',
  'content-length',
  'transfer-encoding',
  'accept',
  'accept-encoding',
  'user-agent',
  'idempotency-key',
  'traceparent',
  'anthropic-version',
  'anthropic-beta',
] as const

/** What the sandbox was asked: a ring that forgets the oldest. Numbers go on when it is emptied. */
export class Journal {
  readonly #ring: Ring<OpenEntry>
  readonly #nameLists = new Map<string, readonly string[]>()

  constructor(limit: number = ENTRIES_LIMIT) {
    this.#ring = new Ring(limit)
  }

  open(request: IncomingMessage, path: string, query: string): OpenEntry {
    const entry: OpenEntry = {
      n: this.#ring.next,
      at_ms: performance.timeOrigin + performance.now(),
      upstream: null,
      deviant: NONE,
      method: request.method ?? '',
      path: path.slice(0, TEXT_LIMIT),
      query: query.slice(0, TEXT_LIMIT),
      request_id: oneHeader(request, 'x-request-id') ?? null,
      credential: null,
      headers: shownHeaders(request),
      header_names: this.#namesOf(request),
      body_bytes: 0,
      body_sha256: null,
      directives: NONE,
      status: null,
      tokens: null,
      model: null,
      stream: null,
      input_tokens: null,
      usage: null,
      task_id: null,
      billed: false,
      bill: null,
      outcome: 'open',
      took_ms: null,
    }
    this.#ring.add(entry)
    return entry
  }

  read(since = 0): JournalPage {
    const { items, next, lost } = this.#ring.read(since)
    return { entries: items, next, lost }
  }

  empty(): void {
    this.#ring.empty()
  }

  /** Clients send the same names over and over, so entries share one list of them. */
  #namesOf({ rawHeaders }: IncomingMessage): readonly string[] {
    let key = ''
    for (let at = 0; at < rawHeaders.length; at += 2) key += `${rawHeaders[at]}\n`
    let names = this.#nameLists.get(key)
    if (names === undefined) {
      names = key.toLowerCase().trimEnd().split('\n')
      if (this.#nameLists.size < NAME_LISTS_LIMIT) this.#nameLists.set(key, names)
    }
    return names
  }
}

const NONE: readonly string[] = []

/** Closes an entry with what came of it. */
export function closeEntry(entry: OpenEntry, outcome: Outcome): void {
  entry.outcome = outcome
  entry.took_ms = Math.round((performance.timeOrigin + performance.now() - entry.at_ms) * 1000) / 1000
}

function shownHeaders(request: IncomingMessage): Record<string, string> {
  const shown: Record<string, string> = {}
  for (const name of SHOWN_HEADERS) {
    const value = oneHeader(request, name)
    if (value !== undefined) shown[name] = value
  }
  return shown
}

function oneHeader({ headers }: IncomingMessage, name: string): string | undefined {
  const value = headers[name]
  return typeof value === 'string' ? value.slice(0, TEXT_LIMIT) : undefined
}
