import { z } from 'zod'
import type { Outbound } from '../../outbound/outbound.ts'
import { readClientMetadata } from './client-metadata.ts'

/**
 * Documents in which clients describe themselves, under the URL that is their id. They are asked for by the guarded client alone, and of
 * what they say only what is known here goes any further.
 */

const DOCUMENT_BYTES = 10_240
const JSON_TYPE = /^application\/(?:[a-z0-9.+-]+\+)?json\b/i

const document = z.looseObject({ client_id: z.string().max(2_048) })

type Parts = { readonly outbound: Pick<Outbound, 'send'> }

/** In place of `fetch`, for all that the library asks for. */
export function createFetchDocument({ outbound }: Parts) {
  return async (asked: string | URL | Request): Promise<Response> => {
    const url = asked instanceof Request ? asked.url : String(asked)
    const reply = await outbound.send({
      ...{ url, method: 'GET', headers: { accept: 'application/json' } },
      maxBodyBytes: DOCUMENT_BYTES,
    })
    if (reply.status !== 200) throw new Error(`the client's document was answered with ${reply.status}`)
    if (!JSON_TYPE.test(reply.headers['content-type'] ?? '')) throw new Error("the client's document is no JSON")
    const given = document.parse(JSON.parse(reply.body.toString('utf8')))
    const known = { ...readClientMetadata(given, 'document'), client_id: given.client_id }
    const headers = { 'content-type': 'application/json', ...cachedFor(reply.headers['cache-control']) }
    return new Response(JSON.stringify(known), { headers })
  }
}

function cachedFor(control: string | undefined): Record<string, string> {
  return control === undefined ? {} : { 'cache-control': control }
}

/** The host that vouches for a client: whoever has it wrote the document. Null for a client that registered itself. */
export function documentHostOf(clientId: string): string | null {
  return clientId.startsWith('https://') ? (URL.parse(clientId)?.host ?? null) : null
}
