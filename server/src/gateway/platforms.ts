import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import { type Platform, Unasked } from '../links/platform.ts'
import type { Binding, Bindings } from '../upstreams/bindings.ts'
import { type Transport, UpstreamFailure } from '../upstreams/transport.ts'

/** Whose users can be linked. */
export const PLATFORM_SLOT = 'social_a_account'

const DEADLINES = { connectMs: 5_000, headersMs: 10_000, idleMs: 10_000, totalMs: 10_000 }
const BODY_BYTES = 1_048_576
const MODES: readonly Mode[] = ['live', 'test']

type Parts = { readonly bindings: Bindings; readonly transport: Pick<Transport, 'send'> }

/** The platforms that operators have configured, as links see them. */
export function createPlatforms({ bindings, transport }: Parts) {
  function platformOf(binding: Binding): Platform | undefined {
    const { id, baseUrl, client, credential } = binding
    if (client === null || credential === null) return undefined
    return {
      upstreamId: id,
      clientId: client.id,
      clientSecret: credential,
      authorizeUrl: client.authorizeUrl,
      baseUrl,
      send: (request) =>
        transport
          .send({ ...request, upstream: binding, maxBodyBytes: BODY_BYTES, deadlines: DEADLINES })
          .catch((error: unknown) => {
            throw error instanceof UpstreamFailure && error.certainty === 'not_sent' ? new Unasked(error) : error
          }),
    }
  }

  return {
    async ofMode(mode: Mode): Promise<Platform | undefined> {
      return (await bindings.find(PLATFORM_SLOT, mode)).map(platformOf).find((one) => one !== undefined)
    },
    async byId(upstreamId: Id): Promise<Platform | undefined> {
      for (const mode of MODES) {
        const binding = await bindings.findOne(PLATFORM_SLOT, mode, upstreamId)
        if (binding !== undefined) return platformOf(binding)
      }
      return undefined
    },
  }
}
