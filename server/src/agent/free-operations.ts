import { z } from 'zod'
import { claimKeyOf, isKey } from '../gateway/idempotency.ts'
import { inputFault } from '../gateway/input-fault.ts'
import type { AgentRequest } from '../http/agent-routes.ts'
import { balanceOf } from '../http/routes/balance.ts'
import { fromLedger } from '../http/routes/from-ledger.ts'
import { callbackPath, scopesOrDefault, shownLink, shownStart, wantedLink } from '../http/routes/links.ts'
import { callsWithKeys, requestOf } from '../http/routes/requests.ts'
import { shownTasks } from '../http/routes/tasks.ts'
import { whoseRecords } from '../http/routes/whose-records.ts'
import { LINKING } from '../identity/scopes.ts'
import { Fault } from '../kernel/fault.ts'
import { type Id, isId } from '../kernel/ids.ts'
import { type Nanos, ZERO } from '../kernel/money.ts'
import type { Arguments } from './call-arguments.ts'
import { listedModel } from './model-card.ts'
import type { AgentParts } from './parts.ts'

/**
 * What costs nothing and is no endpoint of the catalogue: how a key looks after its tasks, its links and its money. Each is what a route
 * of base_url does, under an id of its own.
 */
export type FreeOperation = {
  readonly id: string
  readonly summary: string
  /** As operations of the catalogue have them. */
  readonly asks: string
  readonly example: Arguments
  readonly category: 'video' | 'social' | 'models' | 'account'
  /** The same over HTTP. */
  readonly http: string
  readonly input: z.ZodType
  readonly isReadOnly: boolean
  readonly run: (request: AgentRequest, call: Call) => Promise<Answered & { readonly cost: Nanos }>
}

/** What it answers, and what the task cost that it tells of. */
type Answered = { readonly json: unknown; readonly taskCost?: Nanos }

type Call = { readonly id: Id; readonly given: Arguments }

export type FreeOperations = {
  readonly all: readonly FreeOperation[]
  readonly find: (id: string) => FreeOperation | undefined
}

type Parts = Pick<
  AgentParts,
  'catalogue' | 'begin' | 'tasks' | 'links' | 'models' | 'pool' | 'time' | 'names' | 'publicUrl'
>
type Own<Input> = Omit<FreeOperation, 'run' | 'input'> & {
  readonly input: z.ZodType<Input>
  /** What it counts as, where it needs a scope of its own. */
  readonly counts?: Pick<typeof LINKING, 'id' | 'category'>
  readonly answer: (request: AgentRequest, input: Input, id: Id) => Promise<Answered>
}

const taskId = z.strictObject({ task_id: z.string().min(1).max(200).describe('As video_synthesis gave it') })
const models = z.strictObject({
  contains: z.string().max(200).optional().describe('A part of the names to list'),
  after: z.string().max(200).optional().describe('The last model of the page before'),
})
const taskPage = z.strictObject({
  limit: z.int().min(1).max(100).default(20),
  before: z.string().refine(isId, 'must be the task_id that a page ended with').optional(),
})
const sought = z
  .strictObject({
    request_id: z.string().max(200).optional().describe('Of the call, as its answer told it'),
    idempotency_key: z
      .string()
      .max(255)
      .refine(isKey, 'must have 1 to 255 visible ASCII characters')
      .optional()
      .describe('That the call was sent with; of a call of a batch followed by #1, #2 …'),
  })
  .refine(
    ({ request_id, idempotency_key }) => (request_id === undefined) !== (idempotency_key === undefined),
    'Give request_id or idempotency_key, one of the two.',
  )
const MODELS_PAGE = 50

export function createFreeOperations(parts: Parts): FreeOperations {
  const define = <Input>(own: Own<Input>) => defined(parts, own)
  const all = [...taskOperations(parts, define), ...linkOperations(parts, define), ...accountOperations(parts, define)]
  const byId = new Map(all.map((one) => [one.id, one]))
  return { all, find: (id) => byId.get(id) }
}

type Define = <Input>(own: Own<Input>) => FreeOperation

/** Counted first, as every request; then its arguments are read. */
function defined<Input>({ begin }: Parts, { answer, counts, ...own }: Own<Input>): FreeOperation {
  const operation = counts === undefined ? { id: own.id, limits: [], isForAll: true } : { ...counts, limits: [] }
  return {
    ...own,
    async run(request, { id, given }) {
      await begin({ id, caller: request.caller, operation, hold: null, tokens: 0, claims: [] })
      const { success, data, error } = own.input.safeParse(given)
      if (!success) throw inputFault(error, given)
      return { ...(await answer(request, data, id)), cost: ZERO }
    },
  }
}

function taskOperations({ tasks }: Parts, define: Define): readonly FreeOperation[] {
  const TASKS = '/apis/v1/services/aigc/tasks'
  return [
    define({
      id: 'get_video_task',
      summary: 'See whether a video is ready, and get its address',
      asks: `video clip status ready done finished progress poll check download result url link task state wait still
        rendering where is my generated did it fail watch`,
      example: { task_id: '<task_id>' },
      category: 'video',
      http: `GET ${TASKS}/{task_id}`,
      input: taskId,
      isReadOnly: true,
      answer: async ({ caller }, { task_id }, id) => withCost(await tasks.read([caller.credentialId], task_id), id),
    }),
    define({
      id: 'list_video_tasks',
      summary: 'List the videos that this key has asked for, with what each cost',
      asks: `videos clips all my tasks jobs history earlier previous past recent made generated which list show what
        pending running queue`,
      example: {},
      category: 'video',
      http: 'GET /apis/v1/services/aigc/video-generation/tasks',
      input: taskPage,
      isReadOnly: true,
      answer: async ({ caller }, { limit, before }) => ({
        json: shownTasks(await tasks.list([caller.credentialId], { limit, ...(before !== undefined && { before }) })),
      }),
    }),
    define({
      id: 'cancel_video_task',
      summary: 'Cancel a video that is still waiting',
      asks: 'cancel stop abort kill end video clip task job rendering generation no longer want changed my mind undo',
      example: { task_id: '<task_id>' },
      category: 'video',
      http: `POST ${TASKS}/{task_id}/cancel`,
      input: taskId,
      isReadOnly: false,
      answer: async ({ caller }, { task_id }, id) => withCost(await tasks.cancel(caller.credentialId, task_id), id),
    }),
  ]
}

function withCost({ resource, cost }: Awaited<ReturnType<Parts['tasks']['read']>>, id: Id) {
  const [shown] = shownTasks({ tasks: [{ resource, cost }], next: null }).data
  return { json: { ...shown, request_id: id }, ...(cost !== undefined && { taskCost: cost }) }
}

function linkOperations({ links, names, publicUrl }: Parts, define: Define): readonly FreeOperation[] {
  const { social_a: platform = '' } = names
  return [
    define({
      id: 'list_links',
      summary: 'See which account of a social platform is linked to this key, and whether the link still works',
      asks: `linked connected account accounts social twitter x link status connection which is still valid working
        authorised authorized permission session expired signed in logged`,
      example: {},
      category: 'social',
      http: `GET /apis/v1/${platform}/links`,
      input: z.strictObject({}),
      isReadOnly: true,
      answer: async ({ caller }) => ({ json: { data: (await links.list(caller.credentialId)).map(shownLink) } }),
    }),
    define({
      id: LINKING.id,
      summary: 'Start linking an account of a social platform to this key: a person opens the address and approves',
      asks: `link connect connecting account accounts social twitter x sign in log in login authorise authorize
        authorization oauth permission grant access my reconnect relink allow attach join`,
      example: {},
      category: 'social',
      http: `POST /apis/v1/${platform}/auth_${platform}`,
      input: wantedLink,
      isReadOnly: false,
      counts: LINKING,
      async answer({ caller: { credentialId, mode } }, { scopes }) {
        if (publicUrl === undefined) {
          const cause = new Error('http.public_url is not set, so that users of a platform can not come back to us')
          throw new Fault('managed_upstream_transport', {
            detail: 'The return address of users is not set up. Ask the operator.',
            cause,
          })
        }
        const redirectUri = publicUrl + callbackPath(names)
        const started = await links.start({ credentialId, mode, scopes: scopesOrDefault(scopes), redirectUri })
        return { json: shownStart(started) }
      },
    }),
  ]
}

function accountOperations({ catalogue, models: sold, pool, time }: Parts, define: Define): readonly FreeOperation[] {
  const find = (id: string) => catalogue.operations.find((one) => one.id === id)
  return [
    define({
      id: 'list_models',
      summary: 'List the models on sale with what each costs and how long its answers can be',
      asks: `models model price prices pricing cost costs how much does cheap cheapest expensive compare per million
        tokens token rate rates context window available offered which what llm list support supported catalogue
        catalog largest longest output limit`,
      example: { contains: '' },
      category: 'models',
      http: 'GET /v1/models',
      input: models,
      isReadOnly: true,
      async answer({ caller }, { contains = '', after = '' }) {
        const part = contains.toLowerCase()
        const found = (await sold.list(caller.mode)).filter(({ id }) => id > after && id.toLowerCase().includes(part))
        const page = found.slice(0, MODELS_PAGE)
        const next_after = page.length < found.length ? (page.at(-1)?.id ?? null) : null
        return { json: { data: page.map((one) => listedModel(one, find, caller)), next_after } }
      },
    }),
    define({
      id: 'get_request',
      summary: 'See the outcome and the charge of a request, by request_id or idempotency_key',
      asks: 'lookup outcome unknown receipt idempotency',
      example: { request_id: '<request_id>' },
      category: 'account',
      http: 'GET /v1/requests/{id}',
      input: sought,
      isReadOnly: true,
      async answer({ caller }, { request_id: id, idempotency_key: key }) {
        if (key !== undefined) {
          const keys = catalogue.operations.map((one) => claimKeyOf(one.id, key))
          return { json: await callsWithKeys(pool, caller.credentialId, keys) }
        }
        if (id === undefined || !isId(id)) throw new Fault('resource_not_found')
        return { json: await fromLedger(requestOf(pool, await whoseRecords(pool, caller), id)) }
      },
    }),
    define({
      id: 'get_balance',
      summary: 'See how much money is left, of the account and of the budget of this key',
      asks: `balance budget money credit credits funds left remaining remain spend spent spending how much can i have
        wallet account afford allowance quota bill billing usd dollars`,
      example: {},
      category: 'account',
      http: 'GET /v1/balance',
      input: z.strictObject({}),
      isReadOnly: true,
      answer: async ({ caller }) => ({ json: await balanceOf({ pool, nowMs: time.nowMs() }, caller) }),
    }),
  ]
}
