import { z } from 'zod'
import { refusalsOf } from '../gateway/refusals.ts'
import { assignKey, changeKey, setKeyBudget } from '../identity/key-changes.ts'
import { createKey, type NewKey, revokeKey, revokeSecret, rotateKey } from '../identity/keys.ts'
import { findKey, listKeys } from '../identity/listed-keys.ts'
import type { Mode } from '../kernel/mode.ts'
import { Secret } from '../kernel/secret.ts'
import { findWorkspace } from '../workspaces/workspaces.ts'
import { action, field, flag } from './action.ts'
import { accountField, budgetLine, budgetOf, futureOf, idOf, keyField, nameOf, unknown } from './fields.ts'
import { checkTerms, ownTerms, termFields, termsOf } from './key-terms.ts'
import { keyLine, keyLines, readKeys } from './key-view.ts'

const MODES: Readonly<Record<Mode, string>> = {
  live: 'It is a live key: it spends live money, and reaches live upstreams only.',
  test: 'It is a test key: it spends test money, and reaches test upstreams only.',
}

const create = action({
  name: 'keys create',
  summary: 'create a key; its secret is shown once',
  effect: 'writes',
  positional: ['account'],
  input: z.object({
    account: accountField(),
    ...termFields,
    name: field('name', 'name of the key (default: key)', nameOf).default('key'),
    test: flag('create a test key, which spends test money on test upstreams (default: a live key)'),
    expires: field('time', 'when the key expires, such as 2027-01-31T00:00:00Z (default: never)', futureOf).optional(),
    budget: field(
      'usd/period',
      'spending limit in USD, such as 20/month, 10/week, 5/day or 100/total (default: none)',
      budgetOf,
    ).optional(),
    member: field(
      'member',
      'id of the member whose key it is; the budget of the member applies to it (default: nobody)',
      (text) => idOf(text),
    ).optional(),
  }),
  async run(parts, { account, name, test, expires, budget, member, ...options }) {
    const { pool, ids, by } = parts
    const mode: Mode = test ? 'test' : 'live'
    const terms = termsOf(options)
    const key: NewKey = {
      workspaceId: account,
      mode,
      name,
      ...terms,
      ...(expires !== undefined && { expiresAt: expires }),
      ...(budget !== undefined && { budget }),
      ...(member !== undefined && { memberId: member }),
    }
    await findWorkspace(pool, account).catch(unknown(`account ${account}`))
    await checkTerms(parts, terms)
    const missing = member === undefined ? `account ${account}` : `member ${member} of the account`
    const { id, secret } = await createKey({ pool, ids }, by, key).catch(unknown(missing))
    return { id, mode, secret: secret.reveal() }
  },
  lines: ({ id, mode, secret }) => [`Key ${id} created. ${MODES[mode]} Its secret, which is shown only once:`, secret],
})

const change = action({
  name: 'keys change',
  summary: 'change the rate limits, scopes and addresses of a key; effective within a second',
  effect: 'writes',
  positional: ['key'],
  input: z.object({ key: keyField(), ...termFields }),
  async run(parts, { key, ...options }) {
    const { pool, ids, by } = parts
    const terms = termsOf(options)
    if (Object.keys(terms).length === 0) throw new Error('name at least one change: see farebox keys change --help')
    await findKey(pool, key).catch(unknown(`key ${key}`))
    await checkTerms(parts, terms)
    await changeKey({ pool, ids }, by, key, terms).catch(unknown(`key ${key}`))
    return { id: key, terms: (await findKey(pool, key)).terms }
  },
  lines: ({ id, terms }) => {
    const own = ownTerms(terms)
    return own.length === 0
      ? [`Key ${id} has the limits of its tier, all scopes, and may be used from any address.`]
      : [`Key ${id} now has: ${own.join('; ')}.`]
  },
})

const show = action({
  name: 'keys show',
  summary: 'show a key: limits, scopes, addresses and spend',
  effect: 'reads',
  positional: ['key'],
  input: z.object({ key: keyField() }),
  async run({ pool }, { key }) {
    const found = await findKey(pool, key).catch(unknown(`key ${key}`))
    const [view] = await readKeys(pool, [found])
    return view ?? unknown(`key ${key}`)(undefined)
  },
  lines: keyLines,
})

const list = action({
  name: 'keys list',
  summary: 'list the keys of a customer',
  effect: 'reads',
  positional: ['account'],
  input: z.object({ account: accountField() }),
  async run({ pool }, { account }) {
    const { id } = await findWorkspace(pool, account).catch(unknown(`account ${account}`))
    return readKeys(pool, await listKeys(pool, id))
  },
  lines: (all) => (all.length === 0 ? ['There are no keys.'] : all.map(keyLine)),
})

const OVERLAP_MOST_SECONDS = 31_536_000

function overlapOf(text: string): number {
  const seconds = /^\d{1,8}$/.test(text) ? Number(text) : Number.NaN
  if (!(seconds <= OVERLAP_MOST_SECONDS))
    throw new Error(`must be a whole number of seconds from 0 to ${OVERLAP_MOST_SECONDS}`)
  return seconds
}

const rotate = action({
  name: 'keys rotate',
  summary: 'rotate the secret of a key; the old one works until the overlap ends',
  effect: 'writes',
  positional: ['key'],
  input: z.object({
    key: keyField(),
    overlap: field(
      'seconds',
      'how long the old secret still works: 0 (not at all) to 31536000 (a year) (default: 86400)',
      overlapOf,
    ).default(86_400),
  }),
  async run({ pool, ids, by }, { key, overlap }) {
    const secret = await rotateKey({ pool, ids }, by, key, overlap).catch(unknown(`key ${key}`))
    return { id: key, overlapSeconds: overlap, secret: secret.reveal() }
  },
  lines: ({ id, overlapSeconds, secret }) => {
    const old = overlapSeconds === 0 ? 'no longer works' : `still works for ${durationText(overlapSeconds)}`
    return [`Key ${id} has a new secret; the old one ${old}. The new secret, which is shown only once:`, secret]
  },
})

/** In the largest unit that leaves no rest. Of a day one says 24 hours. */
function durationText(seconds: number): string {
  const [size, unit] = seconds % 3_600 === 0 ? [3_600, 'hour'] : seconds % 60 === 0 ? [60, 'minute'] : [1, 'second']
  const count = seconds / size
  return `${count} ${unit}${count === 1 ? '' : 's'}`
}

const revoke = action({
  name: 'keys revoke',
  summary: 'revoke a key: it can no longer start paid calls',
  effect: 'writes',
  positional: ['key'],
  input: z.object({
    key: keyField().optional(),
    // Whoever has found a secret need not know whose it is.
    secret: field(
      '-',
      'revoke by a leaked secret, read from standard input; a secret from before the last rotation is revoked alone (default: name the key)',
      (text) => new Secret(text.trim()),
      { from: 'standard input' },
    ).optional(),
  }),
  async run({ pool, ids, by }, { key, secret }) {
    if (key !== undefined && secret === undefined) {
      await revokeKey({ pool, ids }, by, key).catch(unknown(`key ${key}`))
      return { id: key, ended: 'key' as const }
    }
    if (secret === undefined || key !== undefined) throw new Error('name the key, or give --secret -')
    return revokeSecret({ pool, ids }, by, secret)
  },
  lines: ({ id, ended }) => [
    ended === 'key'
      ? `Key ${id} is revoked: it can no longer start paid calls.`
      : `The old secret of key ${id} is revoked. Its current secret still works.`,
  ],
})

const budget = action({
  name: 'keys budget',
  summary: 'set the budget of a key, such as 20/month, or none to remove it',
  effect: 'writes',
  positional: ['key', 'budget'],
  input: z.object({
    key: keyField(),
    budget: field('usd/period', 'spending limit in USD, such as 20/month, or none', (text) =>
      text === 'none' ? null : budgetOf(text),
    ),
  }),
  async run({ pool, ids, by }, { key, budget: wanted }) {
    await setKeyBudget({ pool, ids }, by, key, wanted).catch(unknown(`key ${key}`))
    return { id: key, budget: wanted }
  },
  lines: ({ id, budget: set }) => [
    set === null
      ? `Key ${id} has no budget: only the balance of the account limits it.`
      : `Key ${id} may spend ${budgetLine(set)}.`,
  ],
})

const assign = action({
  name: 'keys assign',
  summary: 'assign a key to a member by id, or none; the budget of the member applies to it within a second',
  effect: 'writes',
  positional: ['key', 'member'],
  input: z.object({
    key: keyField(),
    member: field('member', 'id of the member, or none', (text) => (text === 'none' ? null : idOf(text))),
  }),
  async run({ pool, by }, { key, member }) {
    await findKey(pool, key).catch(unknown(`key ${key}`))
    await assignKey({ pool }, by, key, member).catch(unknown(`member ${member} of its account`))
    return { id: key, memberId: member }
  },
  lines: ({ id, memberId }) => [
    memberId === null ? `Key ${id} is nobody's.` : `Key ${id} is assigned to member ${memberId}.`,
  ],
})

const REFUSALS_MS = 30 * 86_400_000

const refusals = action({
  name: 'keys refusals',
  summary: 'list the refused calls of a key in the last 30 days, by hour and reason',
  effect: 'reads',
  positional: ['key'],
  input: z.object({ key: keyField() }),
  run: ({ pool, clock }, { key }) => refusalsOf(pool, key, new Date(clock.nowMs() - REFUSALS_MS)),
  lines: (all, { key }) =>
    all.length === 0
      ? [`No calls of key ${key} were refused in the last 30 days.`]
      : [
          ...all.map(({ hour, reason, count }) => `${hour.toISOString()}  ${count}  ${reason}`),
          'Counts can be a minute old.',
        ],
})

export const keys = [create, change, show, list, rotate, revoke, budget, assign, refusals]
