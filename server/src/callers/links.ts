import { z } from 'zod'
import { type Names, spell } from '../catalogue/operation.ts'
import { LINKING } from '../identity/scopes.ts'
import { Fault } from '../kernel/fault.ts'
import { isId } from '../kernel/ids.ts'
import type { Started } from '../links/links.ts'
import type { Session } from '../links/sessions.ts'
import { originOf } from '../people/visitor.ts'
import type { CallerParts } from './parts.ts'
import { type CallerRequest, type CallerRoute, forAgents, forKey } from './route.ts'

const LINKS = '/apis/v1/{social_a}/links'

const REFUSED_AT =
  'Since when the platform refuses its tokens. The next call tries once more; if they are refused again, it ends.'
const linkScope = z.string().regex(/^[a-z][a-z._]{0,62}$/, 'must be a scope such as follows.write')
/** Which scopes a link is to have. */
const wantedLink = z.looseObject({ scopes: z.array(linkScope).max(50).nullish() })

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
  refused_at: z.iso.datetime().nullable().meta({ description: REFUSED_AT }),
  expires_at: z.iso.datetime().nullable(),
})
const sessions = z.strictObject({ data: z.array(session) })

/** How a key gets to act for a user of a platform, and what it acts for. */
export const LINK_ROUTES: readonly CallerRoute[] = [
  forKey({
    operationId: 'start_link',
    method: 'POST',
    path: '/apis/v1/{social_a}/auth_{social_a}',
    summary: 'Start to link an account of a user to this key',
    tag: 'links',
    counts: LINKING,
    body: wantedLink,
    bodyWords: 'Without scopes, the default ones are asked for.',
    answer: { description: 'Where the user allows it.', body: started },
    refusesAs: 'start_link',
    codes: ['not_configured', 'invalid_json', 'body_too_deep', 'managed_upstream_transport', 'upstream_transport'],
    agents: forAgents({
      id: LINKING.id,
      summary: 'Start linking an account of a social platform to this key: a person opens the address and approves',
      asks: `link connect connecting account accounts social twitter x sign in log in login authorise authorize
        authorization oauth permission grant access my reconnect relink allow attach join`,
      example: {},
      category: 'social',
      input: wantedLink,
    }),
    async run(parts, asked) {
      const { credentialId, mode } = asked.caller
      const scopes = scopesOrDefault(asked.body.scopes)
      const redirectUri = publicUrlOf(parts, asked) + callbackPath(parts.names)
      const body = shownStart(await parts.links.start({ credentialId, mode, scopes, redirectUri }))
      return { body, headers: { 'cache-control': 'no-store' } }
    },
  }),
  forKey({
    operationId: 'list_links',
    method: 'GET',
    path: LINKS,
    summary: 'Accounts that are linked to this key',
    tag: 'links',
    counts: 'links',
    answer: { description: 'The links.', body: sessions },
    agents: forAgents({
      id: 'list_links',
      summary: 'See which account of a social platform is linked to this key, and whether the link still works',
      asks: `linked connected account accounts social twitter x link status connection which is still valid working
        authorised authorized permission session expired signed in logged`,
      example: {},
      category: 'social',
      input: z.strictObject({}),
    }),
    run: async ({ links }, { caller }) => ({ body: { data: (await links.list(caller.credentialId)).map(shownLink) } }),
  }),
  forKey({
    operationId: 'delete_link',
    method: 'DELETE',
    path: `${LINKS}/{id}`,
    params: { id: 'The id of a link.' },
    summary: 'End a link',
    tag: 'links',
    counts: 'links',
    answer: { status: 204, description: 'It has ended.', body: z.undefined() },
    refusesAs: 'one_link',
    codes: ['resource_not_found', 'upstream_transport'],
    async run({ links }, { caller: { credentialId }, params: { id = '' }, visitor }) {
      const by = { actor: `member ${credentialId}`, origin: originOf(visitor) } as const
      if (!isId(id) || !(await links.revoke(credentialId, id, by))) throw new Fault('resource_not_found')
      return { body: undefined }
    },
  }),
]

/** Where the platform sends users back to, below base_url. */
export function callbackPath(names: Names): string {
  return spell('/apis/v1/{social_a}/oauth_callback', names)
}

/** Where a user is to decide, as the caller is told. */
function shownStart({ authUrl, state, expiresAt, scopes }: Started) {
  return { auth_url: authUrl, state, expires_at: expiresAt.toISOString(), scopes: [...scopes] }
}

type WantedScopes = z.output<typeof wantedLink>['scopes']

/** Undefined for the default ones. */
function scopesOrDefault(scopes: WantedScopes): readonly string[] | undefined {
  return scopes === null || scopes === undefined || scopes.length === 0 ? undefined : scopes
}

const LOOPBACK = /^(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?$/

/** What a caller sends as its host could be anybody's; on this machine it is ours. */
function publicUrlOf({ publicUrl }: CallerParts, { header }: CallerRequest): string {
  const host = header('host') ?? ''
  if (publicUrl !== undefined) return publicUrl
  if (LOOPBACK.test(host)) return `http://${host}`
  const cause = new Error('http.public_url is not set, without which users of a platform can not be sent back to us')
  throw new Fault('managed_upstream_transport', {
    detail: 'The return address of users is not set up. Ask the operator.',
    cause,
  })
}

/** A linked account as its key sees it. */
function shownLink(linked: Session) {
  const { id, userId, username, scopes, canRefresh, ended, linkedAt, accessUntil, refusedAt } = linked
  const shown = {
    id,
    user_id: userId,
    username,
    scopes: [...scopes],
    status: ended === null ? 'active' : 'needs_link',
    reason: ended,
    linked_at: linkedAt.toISOString(),
    refused_at: refusedAt?.toISOString() ?? null,
    // One that is refreshed has no end that anybody knows.
    expires_at: canRefresh ? null : accessUntil.toISOString(),
  }
  // Only what was linked is listed, and whoever linked it is known then.
  return shown as z.input<typeof session>
}
