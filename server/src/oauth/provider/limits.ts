import { type Attempts, type Limit, networkKey } from '../../identity/people/attempts.ts'
import type { Visitor } from '../../identity/people/visitor.ts'

/** How often strangers may do what writes rows or could be guessed, by network. Counted in PostgreSQL, for all processes. */

const QUARTER_SECONDS = 15 * 60
const HOUR_SECONDS = 3_600

const limit = (kind: string, most: number, seconds: number): Limit => ({ kind: `oauth ${kind}`, most, seconds })

export const OAUTH_LIMITS = {
  register: limit('registration', 20, HOUR_SECONDS),
  authorize: limit('authorization', 120, QUARTER_SECONDS),
  token: limit('token', 600, QUARTER_SECONDS),
  device: limit('device code', 60, QUARTER_SECONDS),
  revoke: limit('revocation', 300, QUARTER_SECONDS),
  /** A document that is not cached is asked for. */
  document: limit('document', 30, QUARTER_SECONDS),
  /** A person types what a device shows. */
  userCode: limit('user code', 10, QUARTER_SECONDS),
  userCodeFromNetwork: limit('user code from network', 40, QUARTER_SECONDS),
} as const satisfies Readonly<Record<string, Limit>>

export type OauthDeed = keyof typeof OAUTH_LIMITS

/** Throws where a network has done it too often. */
export function takeOne({ take }: Pick<Attempts, 'take'>, deed: OauthDeed, visitor: Visitor): Promise<void> {
  return take([{ limit: OAUTH_LIMITS[deed], key: networkKey(visitor) }])
}
