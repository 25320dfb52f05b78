import { z } from 'zod'
import type { Clock } from '../kernel/clock.ts'
import { Fault } from '../kernel/fault.ts'
import type { Outbound } from '../outbound/outbound.ts'
import { readClientMetadata } from './client-metadata.ts'
import type { KeptDocuments } from './kept-documents.ts'
import type { Payload } from './states.ts'

/**
 * Documents in which clients describe themselves, under the URL that is their id. They are asked for by the guarded client alone, and of
 * what they say only what is known here goes any further.
 */

const DOCUMENT_BYTES = 10_240
const JSON_TYPE = /^application\/(?:[a-z0-9.+-]+\+)?json\b/i

const document = z.looseObject({ client_id: z.string().max(2_048) })

/** How long a host that did not answer is not asked again, and of how many that is known. */
const FAILED_MS = 60_000
const FAILED_KNOWN = 1_000

type Parts = {
  readonly outbound: Pick<Outbound, 'send'>
  readonly kept: Pick<KeptDocuments, 'keep' | 'find'>
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** What is brought along. */
  readonly known: (url: string) => Payload | null
  /** Counts one more that is asked for; throws where there were too many. */
  readonly takeOne: () => Promise<void>
}

/** Its host was not reached, or did not answer: that says nothing about the client. */
class Unanswered extends Error {}

/** Whether something failed because the host of a client's document did not answer. */
export function isUnanswered(error: unknown): boolean {
  return error instanceof Unanswered || (error instanceof Error && error.cause instanceof Unanswered)
}

export type Documents = ReturnType<typeof createDocuments>

export function createDocuments({ outbound, kept, clock, known, takeOne }: Parts) {
  const failed = new Map<string, number>()

  function hasJustFailed(url: string): boolean {
    return clock.monotonicMs() - (failed.get(url) ?? -FAILED_MS) < FAILED_MS
  }

  function rememberFailure(url: string): void {
    failed.delete(url)
    failed.set(url, clock.monotonicMs())
    const [oldest] = failed.keys()
    if (failed.size > FAILED_KNOWN && oldest !== undefined) failed.delete(oldest)
  }

  /** What there is to go on with where the host does not answer. */
  async function findLast(url: string): Promise<Payload | null> {
    return (await kept.find(url)) ?? known(url)
  }

  async function ask(url: string): Promise<Response> {
    const request = {
      url,
      method: 'GET',
      headers: { accept: 'application/json' },
      maxBodyBytes: DOCUMENT_BYTES,
    } as const
    const reply = await outbound.send(request).catch((cause: unknown) => {
      throw new Unanswered("the client's document can't be had", { cause })
    })
    if (reply.status >= 500 || reply.status === 429) throw new Unanswered(`the host answered with ${reply.status}`)
    if (reply.status !== 200) throw new Error(`the client's document was answered with ${reply.status}`)
    if (!JSON_TYPE.test(reply.headers['content-type'] ?? '')) throw new Error("the client's document is no JSON")
    const given = document.parse(JSON.parse(reply.body.toString('utf8')))
    const known = { ...readClientMetadata(given, 'document'), client_id: given.client_id }
    if (given.client_id === url) await kept.keep(url, known)
    return responseOf(known, cachedFor(reply.headers['cache-control']))
  }

  /** Who has been let in before is not turned away because there is too much to ask for, or nobody answers. */
  async function askOrKept(url: string, last: Payload): Promise<Response> {
    if (hasJustFailed(url)) return responseOf(last)
    try {
      await takeOne()
      return await ask(url)
    } catch (error) {
      if (error instanceof Unanswered) rememberFailure(url)
      else if (!(error instanceof Fault)) throw error
      return responseOf(last)
    }
  }

  return {
    /** In place of `fetch`, for all that the library asks for. */
    async fetch(asked: string | URL | Request): Promise<Response> {
      const url = asked instanceof Request ? asked.url : String(asked)
      const last = await findLast(url)
      if (last !== null) return askOrKept(url, last)
      if (hasJustFailed(url)) throw new Unanswered('the host did not answer a moment ago')
      try {
        return await ask(url)
      } catch (error) {
        rememberFailure(url)
        throw error
      }
    },

    /** Whether one that nobody has seen yet may be asked for. What is kept is counted where it is asked for again. */
    async mayFetch(url: string): Promise<boolean> {
      if (!hasJustFailed(url) && (await findLast(url)) === null) await takeOne()
      return true
    },
  }
}

function responseOf(document: Payload, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(document), { headers: { 'content-type': 'application/json', ...headers } })
}

function cachedFor(control: string | undefined): Record<string, string> {
  return control === undefined ? {} : { 'cache-control': control }
}

/** The host that vouches for a client: whoever has it wrote the document. Null for a client that registered itself. */
export function documentHostOf(clientId: string): string | null {
  return clientId.startsWith('https://') ? (URL.parse(clientId)?.host ?? null) : null
}
