import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { callbackPath } from '../../callers/links.ts'
import { type Names, spell } from '../../catalogue/operation.ts'
import { ON_ARRIVAL } from '../../contracts/refusals.ts'
import type { ContractAnswer, ContractRoute } from '../../contracts/route.ts'
import { Fault } from '../../kernel/fault.ts'
import type { Decision, Links } from '../../links/links.ts'
import type { Form } from '../../pages/form-data.ts'
import { originOf, visitorOf } from '../../people/visitor.ts'
import { acceptForms } from '../body.ts'
import type { LinkPages } from '../link-page.ts'
import { sendPage } from '../page-routes.ts'

type Parts = {
  readonly links: Links
  readonly linkPages: LinkPages
  readonly names: Names
}

const PREFIX = '/apis/v1'
const CALLBACK = '/{social_a}/oauth_callback'
const UNDO_BYTES = 1_024
/** With the tokens of the platform, sealed. */
const DECISION_BYTES = 16_384
/** Users of a platform come by their browser, without a credential of ours. */
const PAGE = { access: 'public', isPage: true } as const

const SHOWN: ContractAnswer = {
  description: 'A page for the user.',
  content: { 'text/html': { type: 'string' } },
}
const PAGE_REFUSALS = {
  name: 'page',
  dialect: 'page',
  codes: [...ON_ARRIVAL, 'upstream_transport', 'billing_dependency_timeout', 'managed_upstream_transport'],
} as const
const FROM_PLATFORM = ['state', 'code', 'error'] as const

/** What users meet while they link an account, for contracts. */
export function linkPageRoutes(names: Names): readonly ContractRoute[] {
  const at = (path: string) => PREFIX + spell(path, names)
  return [
    {
      tag: 'links',
      access: 'public',
      operationId: 'link_callback',
      method: 'GET',
      path: at(CALLBACK),
      summary: 'Where the platform sends a user back',
      parameters: FROM_PLATFORM.map((name) => ({
        in: 'query',
        name,
        description: 'As the platform sends it.',
        schema: { type: 'string' },
      })),
      answers: { 200: SHOWN },
      refusals: PAGE_REFUSALS,
    },
    {
      tag: 'links',
      access: 'public',
      operationId: 'decide_link',
      method: 'POST',
      path: at(`${CALLBACK}/decide`),
      summary: 'Confirm a link or decline it, by the form of that page',
      body: {
        required: true,
        type: 'application/x-www-form-urlencoded',
        schema: { type: 'object', properties: { offer: { type: 'string' }, decision: { type: 'string' } } },
      },
      answers: { 200: SHOWN },
      refusals: PAGE_REFUSALS,
    },
    {
      tag: 'links',
      access: 'public',
      operationId: 'undo_link',
      method: 'POST',
      path: at(`${CALLBACK}/undo`),
      summary: 'Undo a link, by the form of that page',
      body: {
        required: true,
        type: 'application/x-www-form-urlencoded',
        schema: { type: 'object', properties: { token: { type: 'string' } } },
      },
      answers: { 200: SHOWN },
      refusals: PAGE_REFUSALS,
    },
  ]
}

/** What users open to let a key act for them. It has no credential of ours: their browser brings them. */
export function addLinkPages(app: FastifyInstance, parts: Parts): void {
  const { links, linkPages, names } = parts
  const at = (path: string) => spell(path, names)
  const undoPath = `${callbackPath(names)}/undo`
  const decidePath = `${callbackPath(names)}/decide`

  app.get(at(CALLBACK), { config: PAGE }, async (request, reply) => {
    const { state, code, error } = textsIn(request.query)
    if (state === undefined || (code === undefined && error === undefined))
      return sendPage(reply, linkPages.told('unknown'))
    const isDenied = error === 'access_denied'
    const back = { state, code: error === undefined ? code : undefined, isDenied }
    const finished = await links.finish(back)
    if (finished.outcome !== 'asked') return sendPage(reply, linkPages.told(finished.outcome))
    if (isOfBrowser(request)) return sendPage(reply, linkPages.asked(finished, decidePath))
    return decide(request, reply, { offer: finished.offer, isAllowed: true })
  })

  async function decide(request: FastifyRequest, reply: FastifyReply, decision: Decision) {
    const decided = await links.decide(decision, from(request))
    if (decided.outcome !== 'linked') return sendPage(reply, linkPages.told(decided.outcome))
    return sendPage(reply, linkPages.linked(decided, undoPath))
  }

  app.register(async (form) => {
    acceptForms(form)
    // Anybody may send one, and more than this is neither read nor reserved.
    const options = { bodyLimit: UNDO_BYTES, config: PAGE }
    const deciding = { bodyLimit: DECISION_BYTES, config: PAGE }
    form.post<{ Body?: Form }>(at(`${CALLBACK}/decide`), deciding, async (request, reply) => {
      const [offer = '', decision] = [request.body?.get('offer') ?? '', request.body?.get('decision')]
      return decide(request, reply, { offer, isAllowed: decision === 'link' })
    })
    form.post<{ Body?: Form }>(at(`${CALLBACK}/undo`), options, async (request, reply) => {
      const token = request.body?.get('token') ?? ''
      const undone = await links.undo(token, from(request)).catch((error: unknown) => {
        if (error instanceof Fault && error.code === 'upstream_transport') return 'not_told' as const
        throw error
      })
      if (undone === 'not_told') return sendPage(reply, linkPages.notTold(undoPath, token))
      return sendPage(reply, linkPages.told(undone === 'unknown' ? 'too_late' : undone))
    })
  })
}

/**
 * Whether a person is there to be asked. Somebody else's link can only be opened in the browser of its victim, which says one of these
 * with whatever it opens: older ones call themselves Mozilla alone where a script loads it. A program that carries its own user's code has
 * asked its user, and is answered in one step.
 */
function isOfBrowser({ headers }: FastifyRequest): boolean {
  const { accept = '', 'user-agent': agent = '', 'sec-fetch-dest': destination } = headers
  return destination !== undefined || /text\/html|image\//.test(accept) || agent.startsWith('Mozilla/')
}

/** What is given once; what is given twice is nobody's. */
function textsIn(query: unknown): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(
    Object.entries(Object(query)).map(([name, value]) => [name, typeof value === 'string' ? value : undefined]),
  )
}

const from = ({ address, headers }: FastifyRequest) => originOf(visitorOf(address, headers['user-agent']))
