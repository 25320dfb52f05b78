import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { type Names, spell } from '../../catalogue/operation.ts'
import { answer } from '../../contracts/answer.ts'
import { AT_THE_DOOR, refusalsOfFree } from '../../contracts/refusals.ts'
import type { ContractAnswer, ContractRoute } from '../../contracts/route.ts'
import { schemaOf } from '../../contracts/schema-of.ts'
import type { Begin } from '../../gateway/begin.ts'
import { inputFault } from '../../gateway/input-fault.ts'
import type { Caller } from '../../identity/caller.ts'
import { LINKING } from '../../identity/scopes.ts'
import { Fault } from '../../kernel/fault.ts'
import { isId } from '../../kernel/ids.ts'
import { LARGE_BYTES } from '../../kernel/memory-budget.ts'
import { rateHeaders } from '../../limits/headers.ts'
import type { Decision, Links, Started } from '../../links/links.ts'
import type { Session } from '../../links/sessions.ts'
import { acceptForms, type Form, largerThan } from '../body.ts'
import { callerOf } from '../caller.ts'
import { type JsonLimits, parseJson } from '../json.ts'
import { originOf } from '../origin.ts'
import type { LinkPages } from '../pages/link-page.ts'
import { sendPage } from '../pages/page.ts'
import { admit } from './admit.ts'
import { idInPath } from './id-in-path.ts'

type Parts = {
  readonly begin: Begin
  readonly links: Links
  readonly linkPages: LinkPages
  readonly names: Names
  readonly jsonLimits: JsonLimits
  /** Under which callers and their users reach us; undefined where nobody said. */
  readonly publicUrl: string | undefined
}

const PREFIX = '/apis/v1'
const CALLBACK = '/{social_a}/oauth_callback'
const UNDO_BYTES = 1_024
/** With the tokens of the platform, sealed. */
const DECISION_BYTES = 16_384
/** Users of a platform come by their browser, without a credential of ours. */
const PAGE = { access: 'public', isPage: true } as const

const linkScope = z.string().regex(/^[a-z][a-z._]{0,62}$/, 'must be a scope such as follows.write')
/** Which scopes a link is to have. */
export const wantedLink = z.looseObject({ scopes: z.array(linkScope).max(50).nullish() })

const started = z.strictObject({
  auth_url: z.url().meta({ description: 'Where the user allows it.' }),
  state: z.string(),
  expires_at: z.iso.datetime().meta({ description: 'Until when the address can be used.' }),
  scopes: z.array(z.string()),
})
const session = z.strictObject({
  id: z.string(),
  user_id: z.string(),
  username: z.string().nullable(),
  scopes: z.array(z.string()),
  status: z.enum(['active', 'needs_link']),
  reason: z.string().nullable().meta({ description: 'Why it has to be linked again.' }),
  linked_at: z.iso.datetime(),
  expires_at: z.iso.datetime().nullable(),
})
const sessions = z.strictObject({ data: z.array(session) })

const SHOWN: ContractAnswer = {
  description: 'A page for the user.',
  content: { 'text/html': { type: 'string' } },
}
const PAGE_REFUSALS = {
  name: 'page',
  dialect: 'page',
  codes: [...AT_THE_DOOR, 'upstream_transport', 'billing_dependency_timeout', 'managed_upstream_transport'],
} as const
const LINK_CODES = [
  'not_configured',
  'invalid_json',
  'body_too_deep',
  'managed_upstream_transport',
  'upstream_transport',
] as const
const FROM_PLATFORM = ['state', 'code', 'error'] as const

/** How accounts of users are linked, for contracts. */
export function linkRoutes(names: Names): readonly ContractRoute[] {
  const at = (path: string) => PREFIX + spell(path, names)
  const common = { tag: 'links', access: 'credential' } as const
  return [
    {
      ...common,
      operationId: 'start_link',
      method: 'POST',
      path: at('/{social_a}/auth_{social_a}'),
      summary: 'Start to link an account of a user to this key',
      body: {
        required: false,
        description: 'Without scopes, the default ones are asked for.',
        schema: schemaOf(wantedLink, 'input'),
      },
      answers: { 200: answer('Where the user allows it.', started) },
      refusals: refusalsOfFree('data', { name: 'start_link', codes: LINK_CODES }),
    },
    {
      ...common,
      operationId: 'list_links',
      method: 'GET',
      path: at('/{social_a}/links'),
      summary: 'Accounts that are linked to this key',
      answers: { 200: answer('The links.', sessions) },
      refusals: refusalsOfFree('data'),
    },
    {
      ...common,
      operationId: 'delete_link',
      method: 'DELETE',
      path: `${at('/{social_a}/links')}/{id}`,
      summary: 'End a link',
      parameters: [idInPath('The id of a link.')],
      answers: { 204: { description: 'It has ended.' } },
      refusals: refusalsOfFree('data', { name: 'one_link', codes: ['resource_not_found', 'upstream_transport'] }),
    },
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

type ById = { Params: { id: string } }

/** How a key gets to act for a user of a platform. What users open has no credential of ours: their browser brings them. */
export function addLinks(app: FastifyInstance, parts: Parts): void {
  const { links, linkPages, names } = parts
  const at = (path: string) => spell(path, names)
  const undoPath = `${callbackPath(names)}/undo`
  const decidePath = `${callbackPath(names)}/decide`

  app.post(at('/{social_a}/auth_{social_a}'), async (request, reply) => {
    const { credentialId, mode } = await admitLink(parts, request, reply)
    const scopes = scopesIn(request.rawBody, parts.jsonLimits)
    const redirectUri = publicUrlOf(parts, request) + callbackPath(names)
    reply.header('cache-control', 'no-store')
    return shownStart(await links.start({ credentialId, mode, scopes, redirectUri }))
  })

  app.get(at('/{social_a}/links'), { exposeHeadRoute: true }, async (request, reply) => {
    const { credentialId } = await admit(parts.begin, 'links', request, reply)
    return { data: (await links.list(credentialId)).map(shownLink) }
  })

  app.delete<ById>(at('/{social_a}/links/:id'), async (request, reply) => {
    const { credentialId } = await admit(parts.begin, 'links', request, reply)
    const { id } = request.params
    const by = { actor: `member ${credentialId}`, origin: originOf(request) } as const
    if (!isId(id) || !(await links.revoke(credentialId, id, by))) throw new Fault('resource_not_found')
    return reply.code(204).send()
  })

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
    const decided = await links.decide(decision, originOf(request))
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
      const undone = await links.undo(token, originOf(request)).catch((error: unknown) => {
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
 * with whatever it opens. A program that carries its own user's code has asked its user, and is answered in one step.
 */
function isOfBrowser({ headers }: FastifyRequest): boolean {
  return headers['sec-fetch-dest'] !== undefined || /text\/html|image\//.test(headers.accept ?? '')
}

/** Where the platform sends users back to, below base_url. */
export function callbackPath(names: Names): string {
  return PREFIX + spell(CALLBACK, names)
}

/** Where a user is to decide, as the caller is told. */
export function shownStart({ authUrl, state, expiresAt, scopes }: Started) {
  return { auth_url: authUrl, state, expires_at: expiresAt.toISOString(), scopes }
}

/** A key that may not use everything needs a scope for this one too. */
async function admitLink({ begin }: Parts, request: FastifyRequest, reply: FastifyReply): Promise<Caller> {
  const caller = callerOf(request)
  const operation = { ...LINKING, limits: [] }
  const { rates } = await begin({ id: request.id, caller, operation, hold: null, tokens: 0, claims: [] })
  reply.headers(rateHeaders(rates))
  return caller
}

type WantedScopes = z.output<typeof wantedLink>['scopes']

/** Undefined for the default ones. */
export function scopesOrDefault(scopes: WantedScopes): readonly string[] | undefined {
  return scopes === null || scopes === undefined || scopes.length === 0 ? undefined : scopes
}

function scopesIn(rawBody: Buffer | null, limits: JsonLimits): readonly string[] | undefined {
  if (rawBody === null || rawBody.length === 0) return undefined
  if (rawBody.length > LARGE_BYTES) throw largerThan(LARGE_BYTES)
  const given = parseJson(rawBody, limits)
  const { success, data, error } = wantedLink.safeParse(given)
  if (!success) throw inputFault(error, given)
  return scopesOrDefault(data.scopes)
}

const LOOPBACK = /^(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?$/

/** What a caller sends as its host could be anybody's; on this machine it is ours. */
function publicUrlOf({ publicUrl }: Parts, { headers: { host = '' } }: FastifyRequest): string {
  if (publicUrl !== undefined) return publicUrl
  if (LOOPBACK.test(host)) return `http://${host}`
  const cause = new Error('http.public_url is not set, without which users of a platform can not be sent back to us')
  throw new Fault('managed_upstream_transport', {
    detail: 'The return address of users is not set up. Ask the operator.',
    cause,
  })
}

/** What is given once; what is given twice is nobody's. */
function textsIn(query: unknown): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(
    Object.entries(Object(query)).map(([name, value]) => [name, typeof value === 'string' ? value : undefined]),
  )
}

/** A linked account as its key sees it. */
export function shownLink({ id, userId, username, scopes, canRefresh, ended, linkedAt, accessUntil }: Session) {
  return {
    id,
    user_id: userId,
    username,
    scopes,
    status: ended === null ? 'active' : 'needs_link',
    reason: ended,
    linked_at: linkedAt.toISOString(),
    // One that is refreshed has no end that anybody knows.
    expires_at: canRefresh ? null : accessUntil.toISOString(),
  }
}
