import type { FastifyReply } from 'fastify'
import { z } from 'zod'
import type { Contract } from '../../contracts/contract.ts'
import type { KeptContracts } from '../../contracts/kept-contracts.ts'
import { contractOfOperation } from '../../contracts/one-operation.ts'
import { Fault, invalidRequest } from '../../kernel/fault.ts'
import type { ContractHeaderNames } from '../../wording/header-names.ts'
import type { Family } from '../families.ts'
import { whole } from './whole.ts'

type Parts = {
  /** What this program serves now; null where nothing could be verified. */
  readonly current: () => Contract | null
  readonly kept: Pick<KeptContracts, 'find'>
  readonly headerNames: ContractHeaderNames
}

/** Under its hash, nothing will ever be anything else. */
const IMMUTABLE = 'public, max-age=31536000, immutable'
/** May be kept, and is asked about each time: after the next release it is another. */
const REVALIDATED = 'no-cache'

const HASH = z.string().regex(/^[0-9a-f]{64}$/)
const asked = z.union([
  z.strictObject({ hash: HASH, bundled: z.literal('1') }),
  z.strictObject({ hash: HASH, operation_id: z.string().min(1).max(100) }),
])

const HOW =
  'Ask for ?hash=<contentHash>&bundled=1, or for ?hash=<contentHash>&operation_id=<operationId>. GET /api/contracts/version tells the hash.'

/** Where the contract of base_url is read, by anybody, at site_url. */
export function contractsFamily({ current, kept, headerNames }: Parts): Family {
  function tell(reply: FastifyReply, { contentHash, docsRevision }: Contract): void {
    reply.headers({ [headerNames.contractHash]: contentHash, [headerNames.docsRevision]: docsRevision })
  }

  /** What is told in all answers where the caller has chosen none: what it should compare with. */
  function tellCurrent(reply: FastifyReply): Contract {
    const now = current()
    if (now === null) throw new Fault('contract_unavailable')
    tell(reply, now)
    return now
  }

  async function selected(contentHash: string, now: Contract): Promise<Contract> {
    if (contentHash === now.contentHash) return now
    const found = await kept.find(contentHash).catch((cause: unknown) => {
      throw unavailableContract(cause)
    })
    if (found === 'damaged') throw unavailableContract(new Error(`the bytes kept for ${contentHash} have another hash`))
    if (found !== undefined) return found
    throw new Fault('contract_hash_mismatch', { members: { content_hash: now.contentHash } })
  }

  return {
    name: 'contracts',
    prefix: '/api/contracts',
    dialect: 'problem',
    register(scope) {
      const options = { config: { access: 'public' }, exposeHeadRoute: true } as const

      scope.get('/version', options, (request, reply) => {
        const { contentHash, docsRevision } = tellCurrent(reply)
        return whole(reply, request.headers['if-none-match'], {
          bytes: Buffer.from(JSON.stringify({ contentHash, docsRevision })),
          tag: `"${contentHash}"`,
          cacheControl: REVALIDATED,
        })
      })

      scope.get('/source', options, async (request, reply) => {
        const now = tellCurrent(reply)
        const { success, data } = asked.safeParse(request.query)
        if (!success) throw invalidRequest(HOW)
        const contract = await selected(data.hash, now)
        tell(reply, contract)
        const operationId = 'operation_id' in data ? data.operation_id : undefined
        const bytes = operationId === undefined ? contract.bytes : contractOfOperation(contract.bytes, operationId)
        if (bytes === undefined)
          throw new Fault('resource_not_found', { detail: 'The contract has no such operation. Check operation_id.' })
        const tag = `"${contract.contentHash}${operationId === undefined ? '' : `.${operationId}`}"`
        return whole(reply, request.headers['if-none-match'], { bytes, tag, cacheControl: IMMUTABLE })
      })
    },
  }
}

function unavailableContract(cause: unknown): Fault {
  return new Fault('contract_unavailable', { cause, retryAfterSeconds: 1 })
}
