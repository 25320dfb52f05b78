import type { Contract } from '../../contracts/contract.ts'
import { Fault } from '../../kernel/fault.ts'
import type { ContractHeaderNames } from '../../wording/header-names.ts'
import type { Family } from '../families.ts'
import { whole } from './whole.ts'

/** What was seen of what is sold: canonical JSON, whose SHA-256 is the hash. */
export type Snapshot = { readonly contentHash: string; readonly bytes: Buffer; readonly observedAt: Date }

/** What can be said of sales now. A stale snapshot carries the time of its own observation. */
export type SalesNow =
  | { readonly freshness: 'fresh'; readonly snapshot: Snapshot }
  | { readonly freshness: 'stale'; readonly snapshot: Snapshot; readonly reason: string }
  | { readonly freshness: 'unavailable' }

type Parts = {
  /** What this program serves; null where nothing could be verified. */
  readonly current: () => Contract | null
  readonly headerNames: ContractHeaderNames
  readonly now: () => SalesNow
}

/** Why nothing, or nothing new, can be told. */
export const SALES_SOURCE_UNAVAILABLE = 'verified_sales_source_unavailable'
/** Why a snapshot is stale that can be read: nobody has made another for too long. */
export const OBSERVATION_TOO_OLD = 'observation_too_old'
const RETRY_AFTER_SECONDS = 10

/** What is sold, for programs, at site_url: from memory, to anybody. */
export function salesFamily({ current, headerNames, now }: Parts): Family {
  const about = () => {
    const contract = current()
    if (contract === null) return {}
    return { [headerNames.contractHash]: contract.contentHash, [headerNames.docsRevision]: contract.docsRevision }
  }
  let last: Sent | undefined
  /** One for all who read the same, however slowly: a snapshot may have megabytes. */
  const sent = (sales: Told): Sent => {
    const tag = tagOf(sales)
    if (last?.tag !== tag) last = { tag, bytes: bodyOf(sales) }
    return last
  }
  return {
    name: 'sales',
    prefix: '/api/sales-api-data',
    dialect: 'problem',
    register(scope) {
      scope.get('', { config: { access: 'public' }, exposeHeadRoute: true }, (request, reply) => {
        reply.headers(about())
        const sales = now()
        if (sales.freshness === 'unavailable')
          throw new Fault('sales_data_unavailable', {
            members: { freshness: 'unavailable', reason_code: SALES_SOURCE_UNAVAILABLE },
            retryAfterSeconds: RETRY_AFTER_SECONDS,
          })
        return whole(reply, request.headers['if-none-match'], { ...sent(sales), cacheControl: 'no-cache' })
      })
    },
  }
}

type Told = Exclude<SalesNow, { readonly freshness: 'unavailable' }>
type Sent = { readonly tag: string; readonly bytes: Buffer }

/** Of all that the body is made of: the time of the observation is in the bytes that were hashed. */
function tagOf(sales: Told): string {
  const reason = sales.freshness === 'stale' ? `.${sales.reason}` : ''
  return `"${sales.snapshot.contentHash}.${sales.freshness}${reason}"`
}

/** The snapshot stands in it as the bytes that were hashed, so that whoever reads it can hash them too. */
function bodyOf(sales: Told): Buffer {
  const { freshness, snapshot } = sales
  const said = {
    freshness,
    ...(sales.freshness === 'stale' && { reason_code: sales.reason }),
    observed_at: snapshot.observedAt.toISOString(),
    content_hash: snapshot.contentHash,
  }
  const head = `${JSON.stringify(said).slice(0, -1)},"snapshot":`
  return Buffer.concat([Buffer.from(head), snapshot.bytes, Buffer.from('}')])
}
