import { z } from 'zod'
import { budgetForm, budgetOf, idForm, orFault, timeForm } from '../../api/forms.ts'
import { money, moneyBody } from '../../api/money.ts'
import { PAGE, pageFrom, pageOf } from '../../api/pages.ts'
import type { Reply } from '../../api/route.ts'
import { tagsIn, tagText } from '../../budgets/tags.ts'
import { HOLDINGS } from '../../catalogue/holding.ts'
import { ON_DISCONNECT } from '../../catalogue/on-disconnect.ts'
import { tryFrom } from '../../identity/failures-by-address.ts'
import { assignKey, changeKey, setKeyBudget, setKeyExpiry } from '../../identity/key-changes.ts'
import { networksIn, type TermsChange } from '../../identity/key-terms.ts'
import { createKey, revokeKey, revokeSecret, rotateKey } from '../../identity/keys.ts'
import { findKeyIn, KEY_STATES, listKeyPage, stateOfKey } from '../../identity/keys-of-account.ts'
import type { ListedKey } from '../../identity/listed-keys.ts'
import { OPERATOR_TERMS } from '../../identity/operator-terms.ts'
import { Fault, invalidRequest } from '../../kernel/fault.ts'
import type { Id } from '../../kernel/ids.ts'
import { may } from '../../kernel/role.ts'
import { Secret } from '../../kernel/secret.ts'
import { accountIn, type Place } from '../../people/membership.ts'
import { type Member, requireOwnMode } from '../authenticate.ts'
import type { AccountParts } from '../parts.ts'
import { type AccountRoute, forAnybody, type Given, inWorkspace } from '../route.ts'
import { TICKET_PATH } from '../ticket-path.ts'

const rate = z.int().positive().max(1_000_000_000).nullable()
const terms = {
  expires_at: timeForm.nullable().optional().meta({ description: 'In the future; null for never.' }),
  budget: budgetForm.nullable().optional().meta({ description: 'Null for none.' }),
  member_id: idForm.nullable().optional().meta({
    description:
      'Whose it is, so that their budget bounds it; null for nobody. Of a developer: their own, also where left out.',
  }),
  rates: z
    .strictObject({
      requests_per_minute: rate.optional(),
      tokens_per_minute: rate.optional(),
      concurrency: rate.optional(),
    })
    .optional()
    .meta({ description: 'Within those of the tier; null for those.' }),
  scopes: z
    .array(z.string().min(1).max(200))
    .min(1)
    .max(100)
    .nullable()
    .optional()
    .meta({ description: 'Operations, categories and models (model:<name>) that it may use; null for all.' }),
  allowed_addresses: z
    .array(z.string().min(1).max(100))
    .min(1)
    .max(50)
    .nullable()
    .optional()
    .meta({ description: 'Addresses and networks that it may be used from; null for any.' }),
  tags: z
    .array(z.string().min(1).max(100))
    .max(8)
    .nullable()
    .optional()
    .meta({ description: 'name=value: what all of its calls are tagged with; null for nothing.' }),
  on_disconnect: z
    .enum(ON_DISCONNECT)
    .nullable()
    .optional()
    .meta({ description: 'Null for what the installation does.' }),
  holding: z.enum(HOLDINGS).nullable().optional().meta({ description: 'Null for what the installation does.' }),
}
const keyName = z
  .string()
  .trim()
  .min(1)
  .max(200)
  .regex(/^[^\p{Cc}]*$/u, 'must not have control characters')

const KINDS = ['key', 'ticket'] as const
const kind = z.enum(KINDS)

const nullableTime = z.iso.datetime().nullable()
const key = z.strictObject({
  id: z.string(),
  kind: kind.meta({ description: 'A ticket is a key that was given away: it always has a total and an end.' }),
  name: z.string(),
  mode: z.enum(['live', 'test']),
  state: z.enum(KEY_STATES),
  created_at: z.iso.datetime(),
  expires_at: nullableTime,
  revoked_at: nullableTime,
  previous_secret_until: nullableTime.meta({ description: 'Until when the secret before the last rotation works.' }),
  member_id: z.string().nullable(),
  grant_id: z
    .string()
    .nullable()
    .meta({ description: 'The grant whose client was told the secret, because it made or rotated the key.' }),
  budget: z.strictObject({ period: z.string(), amount: moneyBody }).nullable(),
  rates: z.strictObject({
    requests_per_minute: z.int().nullable(),
    tokens_per_minute: z.int().nullable(),
    concurrency: z.int().nullable(),
  }),
  scopes: z.array(z.string()).nullable(),
  allowed_addresses: z.array(z.string()).nullable(),
  tags: z.array(z.string()).nullable(),
  on_disconnect: z.string().nullable(),
  holding: z.string().nullable(),
  set_by_operator: z
    .array(z.enum(OPERATOR_TERMS))
    .meta({ description: 'What of it the operator has set: only they can change that.' }),
})
const withSecret = key.extend({
  secret: z
    .string()
    .nullable()
    .meta({ description: 'Told once. Null where the request is a repetition: rotate the key if you missed it.' }),
  link: z.string().nullable().meta({
    description: 'Of a ticket: what its holder opens, with the secret behind the #. Told once, as the secret is.',
  }),
})

export function toldKey(row: ListedKey, nowMs: number): z.output<typeof key> {
  const { rates, scopes, networks, tags, onDisconnect, holding } = row.terms
  return {
    ...{ id: row.id, kind: row.isTicket ? ('ticket' as const) : ('key' as const) },
    ...{ name: row.name, mode: row.mode, state: stateOfKey(row, nowMs) },
    created_at: row.createdAt.toISOString(),
    expires_at: row.expiresAt?.toISOString() ?? null,
    revoked_at: row.revokedAt?.toISOString() ?? null,
    previous_secret_until: row.previousUntil?.toISOString() ?? null,
    member_id: row.memberId,
    grant_id: row.grantId,
    budget: row.budget && { period: row.budget.period, amount: money(row.budget.amount) },
    rates: {
      requests_per_minute: rates.requestsPerMinute,
      tokens_per_minute: rates.tokensPerMinute,
      concurrency: rates.concurrency,
    },
    scopes: scopes && [...scopes],
    allowed_addresses: networks && [...networks.texts],
    tags: tags?.map(tagText) ?? null,
    on_disconnect: onDisconnect,
    holding,
    set_by_operator: [...row.operatorTerms],
  }
}

/** A key with its secret, which is told this once; of a ticket with the link, which has the secret where no server is sent it. */
function toldOnce({ siteUrl, time }: AccountParts, row: ListedKey, secret: Secret): Reply<z.output<typeof withSecret>> {
  const told = toldKey(row, time.nowMs())
  const link = row.isTicket ? `${siteUrl}${TICKET_PATH}#${secret.reveal()}` : null
  return { body: { ...told, secret: secret.reveal(), link }, kept: { ...told, secret: null, link: null } }
}

type Terms = z.output<ReturnType<typeof z.strictObject<typeof terms>>>

/** What of them is named. */
function changeIn(given: Terms): TermsChange {
  const { rates, scopes, allowed_addresses: addresses, tags, on_disconnect: onDisconnect, holding } = given
  return {
    ...(rates !== undefined && {
      rates: {
        ...(rates.requests_per_minute !== undefined && { requestsPerMinute: rates.requests_per_minute }),
        ...(rates.tokens_per_minute !== undefined && { tokensPerMinute: rates.tokens_per_minute }),
        ...(rates.concurrency !== undefined && { concurrency: rates.concurrency }),
      },
    }),
    ...(scopes !== undefined && { scopes: scopes && [...new Set(scopes)] }),
    ...(addresses !== undefined && {
      networks: addresses && orFault('allowed_addresses', () => networksIn(addresses)),
    }),
    ...(tags !== undefined && { tags: tags && orFault('tags', () => tagsIn(tags)) }),
    ...(onDisconnect !== undefined && { onDisconnect }),
    ...(holding !== undefined && { holding }),
  }
}

async function checkTerms(
  { checkScopes, time }: AccountParts,
  { scopes, expires_at: expiresAt }: Terms,
): Promise<void> {
  if (expiresAt !== undefined && expiresAt !== null && expiresAt.getTime() <= time.nowMs())
    throw invalidRequest('"expires_at" must be in the future.', 'expires_at')
  if (scopes !== undefined && scopes !== null) await checkScopes(scopes)
}

type AboutKey = Pick<Given, 'on' | 'params'> & { readonly place: { readonly id: string }; readonly member: Member }

/** One of the workspace; to a client, one of its own mode. */
async function keyIn({ on, params, place, member }: AboutKey, isLocked = false): Promise<ListedKey> {
  const found = await findKeyIn(on, { workspaceId: place.id, id: params.key_id ?? '', isLocked })
  requireOwnMode(member, found.mode)
  return found
}

/** What the budget of a member bounds must not be escaped by them: who does not manage the workspace makes, changes and rotates keys of their own. */
function requireOwnKey({ role, memberId }: Place, of: Id | null): void {
  if (may(role, 'workspace.manage') || of === memberId) return
  throw new Fault('forbidden', {
    detail: `Your role is ${role}, which makes, changes and rotates only keys of your own (member_id ${memberId}). Ask an owner or admin.`,
  })
}

/** What an owner or admin has fixed for a key stays so: who does not manage the workspace adds tags, and takes scopes away. */
function requireNarrower({ role }: Place, { terms: { scopes, tags } }: ListedKey, change: TermsChange): void {
  if (may(role, 'workspace.manage')) return
  const keepsTags = change.tags === undefined || isWithin(tags?.map(tagText) ?? [], change.tags?.map(tagText) ?? [])
  const keepsScopes =
    change.scopes === undefined || scopes === null || (change.scopes !== null && isWithin(change.scopes, scopes))
  if (keepsTags && keepsScopes) return
  throw new Fault('forbidden', {
    detail: `Your role is ${role}, which can add tags to a key and take scopes away, and not the other way round. Ask an owner or admin.`,
  })
}

const isWithin = (some: readonly string[], all: readonly string[]) => some.every((one) => all.includes(one))

const ONE = '/workspaces/{workspace_id}/keys/{key_id}'

export const KEY_ROUTES: readonly AccountRoute[] = [
  inWorkspace({
    operationId: 'list_keys',
    method: 'GET',
    path: '/workspaces/{workspace_id}/keys',
    need: 'workspace.read',
    tokens: 'own mode',
    mode: 'named',
    summary: 'Keys of a workspace, the newest first',
    tag: 'keys',
    query: z.strictObject({
      ...PAGE,
      state: z.enum(KEY_STATES).optional().meta({ description: 'Only those in this state.' }),
      member_id: idForm.optional().meta({ description: 'Only those of this member.' }),
      kind: kind.optional().meta({ description: 'Only tickets, or only what is none.' }),
    }),
    answer: { description: 'A page of keys.', body: pageOf(key) },
    async run({ pool, time }, { place, mode, query }) {
      const { limit, cursor, state, member_id: memberId, kind: ofKind } = query
      const accountId = accountIn(place, mode)
      const rows = await listKeyPage(pool, {
        workspaceId: place.id,
        accountId,
        state,
        memberId,
        isTicket: ofKind && ofKind === 'ticket',
        after: cursor,
        most: limit + 1,
      })
      return { body: pageFrom(rows, limit, (row) => toldKey(row, time.nowMs())) }
    },
  }),
  inWorkspace({
    operationId: 'create_key',
    method: 'POST',
    path: '/workspaces/{workspace_id}/keys',
    need: 'keys.manage',
    tokens: 'own mode',
    mode: 'named',
    summary: 'Make a key; its secret is told once',
    tag: 'keys',
    description:
      'A ticket (kind) is given away: its budget is a total, it has an end, and the answer has a link by which its holder sees, without an account, what is left. Nothing is taken from the balance for it: calls are paid as those of any key, at most that total, and none begins after the end.',
    body: z.strictObject({
      kind: kind.default('key').meta({ description: 'A ticket takes a budget for "total" and expires_at.' }),
      name: keyName,
      ...terms,
    }),
    answer: { status: 201, description: 'The key, with its secret.', body: withSecret, hasEtag: true },
    codes: ['quota_exceeded', 'resource_not_found'],
    prepare: async (parts, { body }) => checkTerms(parts, body),
    async run(parts, { member, place, mode, body, on }) {
      const { name, expires_at: expiresAt, budget } = body
      const own = may(place.role, 'workspace.manage') ? null : place.memberId
      const memberId = body.member_id === undefined ? own : body.member_id
      requireOwnKey(place, memberId)
      const { id, secret } = await createKey({ pool: on, ids: parts.ids }, member.by, {
        ...{ workspaceId: place.id, mode, name, isTicket: body.kind === 'ticket' },
        ...(expiresAt && { expiresAt }),
        ...(budget && { budget: budgetOf(budget) }),
        ...(memberId && { memberId }),
        ...(member.granted !== null && { grantId: member.granted.grantId }),
        ...changeIn(body),
      })
      return toldOnce(parts, await findKeyIn(on, { workspaceId: place.id, id }), secret)
    },
  }),
  inWorkspace({
    operationId: 'get_key',
    method: 'GET',
    path: ONE,
    need: 'workspace.read',
    tokens: 'own mode',
    mode: 'its own',
    summary: 'A key',
    tag: 'keys',
    answer: { description: 'The key.', body: key, hasEtag: true },
    run: async ({ time }, asked) => ({ body: toldKey(await keyIn(asked), time.nowMs()) }),
  }),
  inWorkspace({
    operationId: 'update_key',
    method: 'PATCH',
    path: ONE,
    need: 'keys.manage',
    tokens: 'own mode',
    mode: 'its own',
    summary: 'Change what a key may do; what is left out stays as it is',
    description: 'A lower budget holds from the answer on. Other changes reach every process within a second.',
    tag: 'keys',
    body: z.strictObject(terms),
    answer: { description: 'The key.', body: key, hasEtag: true },
    prepare: async (parts, { body }) => checkTerms(parts, body),
    async run({ ids, time }, asked) {
      const { member, body, on, requireMatch, place } = asked
      const found = await keyIn(asked, true)
      const { id, mode } = found
      requireOwnKey(place, found.memberId)
      requireMatch(toldKey(found, time.nowMs()))
      if (found.revokedAt !== null)
        throw new Fault('resource_not_found', { detail: 'The key is revoked. Make another one.' })
      const change = changeIn(body)
      requireNarrower(place, found, change)
      const parts = { pool: on, ids }
      const { expires_at: expiresAt, budget, member_id: memberId } = body
      if (expiresAt !== undefined) await setKeyExpiry(parts, member.by, id, expiresAt)
      if (budget !== undefined) await setKeyBudget(parts, member.by, id, budget && budgetOf(budget))
      if (memberId !== undefined) {
        requireOwnKey(place, memberId)
        await assignKey(parts, member.by, id, memberId)
      }
      if (Object.keys(change).length > 0) await changeKey(parts, member.by, id, change)
      const after = await findKeyIn(on, { workspaceId: place.id, id })
      if (after.mode !== mode) throw new Error('a key has changed its mode')
      return { body: toldKey(after, time.nowMs()) }
    },
  }),
  inWorkspace({
    operationId: 'rotate_key',
    method: 'POST',
    path: `${ONE}/rotate`,
    need: 'keys.manage',
    tokens: 'own mode',
    mode: 'its own',
    summary: 'Give a key a new secret, which is told once',
    description:
      'The secret before it works until the overlap is over, and one before that until its own is over. With an overlap of 0 both end at once.',
    tag: 'keys',
    body: z.strictObject({
      overlap_seconds: z
        .int()
        .min(0)
        .max(30 * 86_400)
        .default(86_400)
        .meta({ description: 'For how long the old secret works, too.' }),
    }),
    answer: { description: 'The key, with its new secret.', body: withSecret, hasEtag: true },
    async run(parts, asked) {
      const { member, body, on, place } = asked
      const { id, memberId } = await keyIn(asked, true)
      requireOwnKey(place, memberId)
      const secret = await rotateKey({ pool: on, ids: parts.ids }, member.by, id, body.overlap_seconds, {
        ...{ grantId: member.granted?.grantId ?? null, keepsOlder: true },
      })
      return toldOnce(parts, await findKeyIn(on, { workspaceId: place.id, id }), secret)
    },
  }),
  inWorkspace({
    operationId: 'revoke_key',
    method: 'DELETE',
    path: ONE,
    need: 'keys.manage',
    tokens: 'own mode',
    mode: 'its own',
    whileClosing: true,
    summary: 'Revoke a key; from the answer on, no paid call begins with it',
    tag: 'keys',
    answer: { description: 'The key.', body: key, hasEtag: true },
    async run({ ids, time }, asked) {
      const { member, on, place } = asked
      const { id } = await keyIn(asked, true)
      await revokeKey({ pool: on, ids }, member.by, id)
      return { body: toldKey(await findKeyIn(on, { workspaceId: place.id, id }), time.nowMs()) }
    },
  }),
  forAnybody({
    operationId: 'revoke_secret',
    method: 'POST',
    path: '/revoke-secret',
    tokens: 'both',
    summary: 'Revoke a secret that somebody found',
    description:
      'Whoever has the secret may: nobody has to sign in, and no Idempotency-Key is needed. The current secret ends its key. The one before the last rotation ends alone.',
    tag: 'keys',
    body: z.strictObject({ secret: z.string().min(1).max(200) }),
    answer: {
      description: 'What has ended.',
      body: z.strictObject({ key_id: z.string(), ended: z.enum(['key', 'previous']) }),
    },
    codes: ['rate_limit_exceeded', 'resource_not_found', 'billing_dependency_timeout'],
    async run({ pool, ids, failures }, { body, visitor }) {
      const { address } = visitor
      const by = { actor: 'service revocation', origin: { via: 'http', address } } as const
      return tryFrom(failures, address, async () => {
        const { id, ended } = await revokeSecret({ pool, ids }, by, new Secret(body.secret)).catch((error: unknown) => {
          // Neither what cost nothing to see nor an outage of ours is a guess.
          if (!(error instanceof Fault) || error.code !== 'resource_not_found') throw error
          failures.note(address)
          throw new Fault('resource_not_found', { detail: NO_SECRET })
        })
        return { body: { key_id: id, ended } }
      })
    },
  }),
]

/** The same for one that never was: who guesses learns nothing. */
const NO_SECRET = 'This secret is already invalid. Nothing has to be done.'
