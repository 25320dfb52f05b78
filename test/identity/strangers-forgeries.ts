import { crc32 } from 'node:zlib'
import { makeKey } from '../../server/src/identity/key-format.ts'
import { createKey, revokeKey, rotateKey } from '../../server/src/identity/keys.ts'
import type { connect } from '../ledger/world.ts'
import { ACTOR, ids, makeCustomer } from './customers.ts'

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const SECRET_AT = 44
export const SECRET_DIGITS = 43

/** Ends a key as whoever knows how they are made would: only its secret can give it away. */
export function withChecksum(text: string): string {
  let checksum = ''
  for (let rest = crc32(text); checksum.length < 6; rest = Math.floor(rest / 62))
    checksum = DIGITS.charAt(rest % 62) + checksum
  return text + checksum
}

const withoutChecksum = (key: string) => key.slice(0, -6)

/** The same key but for the last digits of its secret. */
export function differingInLast(key: string, digits: number): string {
  const kept = withoutChecksum(key).slice(0, -digits)
  const changed = withoutChecksum(key)
    .slice(-digits)
    .replace(/./g, (digit) => DIGITS.charAt((DIGITS.indexOf(digit) + 1) % DIGITS.length))
  return withChecksum(kept + changed)
}

/** Text of somebody's choice where the id belongs, in a key that is right in everything else. */
export function withIdOf(text: string): string {
  return withChecksum(`fb_live_000${text.padEnd(32, '-').slice(0, 32)}_${'A'.repeat(SECRET_DIGITS)}`)
}

/** Every kind of credential that is not, or no longer, one; each must be told the same. */
export async function badCredentials(pool: ReturnType<typeof connect>['pools']['rest']) {
  const parts = { pool, ids }
  const one = await makeCustomer(pool)
  const another = await makeCustomer(pool)
  const more = { workspaceId: one.workspaceId, mode: 'live', name: 'another' } as const
  const expired = await createKey(parts, ACTOR, { ...more, expiresAt: new Date(Date.now() - 60_000) })
  const revoked = await createKey(parts, ACTOR, more)
  await revokeKey(parts, ACTOR, revoked.id)
  const rotated = await createKey(parts, ACTOR, more)
  await rotateKey(parts, ACTOR, rotated.id, 0)
  const body = withoutChecksum(one.secret)
  const shard = body.startsWith('fb_live_000') ? '001' : '000'
  return {
    'an unknown id': makeKey(ids.next(), 'live', 0).reveal(),
    'a wrong secret': makeKey(one.keyId, 'live', 0).reveal(),
    "another key's secret": withChecksum(body.slice(0, SECRET_AT) + another.secret.slice(SECRET_AT, -6)),
    'a revoked key': revoked.secret.reveal(),
    'an expired key with a wrong secret': makeKey(expired.id, 'live', 0).reveal(),
    'a secret that was replaced': rotated.secret.reveal(),
    'another mode': withChecksum(body.replace('fb_live_', 'fb_test_')),
    'another shard': withChecksum(`fb_live_${shard}${body.slice(11)}`),
    'a wrong checksum': one.secret.slice(0, -1) + (one.secret.endsWith('0') ? '1' : '0'),
    'a key that is cut off': one.secret.slice(0, -1),
    'another case': one.secret.toUpperCase(),
    'a key of somebody else': `sk-proj-${'x'.repeat(40)}`,
    'a word': 'x',
  }
}
