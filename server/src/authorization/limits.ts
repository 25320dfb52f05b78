import type { Id } from '../kernel/ids.ts'
import { type Attempts, addressKey, type Limit, networkKey, type Tried } from '../people/attempts.ts'
import { hashOf } from '../people/tokens.ts'
import type { Visitor } from '../people/visitor.ts'

/** How often strangers may do what writes rows or could be guessed, by address or network. Counted in PostgreSQL, for all processes. */

const QUARTER_SECONDS = 15 * 60
const HOUR_SECONDS = 3_600

const limit = (kind: string, most: number, seconds: number): Limit => ({ kind: `oauth ${kind}`, most, seconds })

export const OAUTH_LIMITS = {
  register: limit('registration', 20, HOUR_SECONDS),
  /** Several offices, or all that one provider hosts, may stand in one network. */
  registerFromNetwork: limit('registration from network', 100, HOUR_SECONDS),
  authorize: limit('authorization', 120, QUARTER_SECONDS),
  /** Of those that fail: a grant bounds those that succeed, and neighbours can't use them up for each other. */
  token: limit('token', 600, QUARTER_SECONDS),
  /** Each leaves a row in the audit log, and one by which a token is known that comes again. */
  refreshOfGrant: limit('refresh of grant', 120, HOUR_SECONDS),
  refreshOfGrantInDay: limit('refresh of grant in a day', 600, 24 * HOUR_SECONDS),
  device: limit('device code', 60, QUARTER_SECONDS),
  revoke: limit('revocation', 300, QUARTER_SECONDS),
  /** A document that is not cached is asked for. */
  document: limit('document', 30, QUARTER_SECONDS),
  /** A person types what a device shows. */
  userCode: limit('user code', 10, QUARTER_SECONDS),
  userCodeFromNetwork: limit('user code from network', 40, QUARTER_SECONDS),
} as const satisfies Readonly<Record<string, Limit>>

type KeyOf = (visitor: Visitor) => Buffer

const { register, registerFromNetwork, authorize, token, device, revoke, document } = OAUTH_LIMITS

/** What clients and browsers do, and who is counted for it. */
const COUNTED = {
  register: [
    [register, addressKey],
    [registerFromNetwork, networkKey],
  ],
  authorize: [[authorize, networkKey]],
  token: [[token, addressKey]],
  device: [[device, networkKey]],
  revoke: [[revoke, networkKey]],
  document: [[document, networkKey]],
} as const satisfies Readonly<Record<string, readonly (readonly [Limit, KeyOf])[]>>

export type CountedRequest = keyof typeof COUNTED

/** Throws where somebody has done it too often. */
export function takeOne({ take }: Pick<Attempts, 'take'>, counted: CountedRequest, visitor: Visitor): Promise<void> {
  return take(triedWith(counted, visitor))
}

/** What did not fail is not counted, where only failures are. */
export function giveOneBack(
  { giveBack }: Pick<Attempts, 'giveBack'>,
  counted: CountedRequest,
  visitor: Visitor,
): Promise<void> {
  return giveBack(triedWith(counted, visitor))
}

/** Throws where the tokens of a grant were refreshed too often, by whomever. */
export function takeRefresh({ take }: Pick<Attempts, 'take'>, grantId: Id): Promise<void> {
  const key = hashOf(grantId)
  return take([
    { limit: OAUTH_LIMITS.refreshOfGrant, key },
    { limit: OAUTH_LIMITS.refreshOfGrantInDay, key },
  ])
}

function triedWith(counted: CountedRequest, visitor: Visitor): readonly Tried[] {
  return COUNTED[counted].map(([limit, keyOf]) => ({ limit, key: keyOf(visitor) }))
}
