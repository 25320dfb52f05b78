import { createHmac, randomInt } from 'node:crypto'
import { z } from 'zod'
import type { Id } from '../kernel/ids.ts'
import { Secret } from '../kernel/secret.ts'
import type { Query } from '../storage/transaction.ts'

/** Recovery codes, for who has lost the app of the second factor. Each works once. */

const CODES = 10
/** Crockford's letters: none is taken for another. */
const LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const LETTERS_OF_CODE = 10

/** Whose they are, and the key of the second factor. */
type Owner = { readonly personId: Id; readonly key: Buffer }

/** They are short, so that they are hashed with a key that is sealed: a copy of the table alone is no use to who would guess them. */
function hashOfCode(key: Buffer, typed: string): Buffer {
  const letters = typed
    .toUpperCase()
    .replaceAll(/[^0-9A-Z]/g, '')
    .replaceAll('O', '0')
    .replaceAll(/[IL]/g, '1')
  return createHmac('sha256', key).update(`recovery ${letters}`).digest()
}

/** False where it is none of theirs, or was used. */
export async function useRecoveryCode(query: Query, { personId, key }: Owner, typed: string): Promise<boolean> {
  const { rowCount } = await query(
    'update recovery_codes set used_at = clock_timestamp() where person_id = $1 and hash = $2 and used_at is null',
    [personId, hashOfCode(key, typed)],
  )
  return rowCount === 1
}

export async function replaceRecoveryCodes(query: Query, { personId, key }: Owner): Promise<readonly Secret[]> {
  const codes = Array.from({ length: CODES }, () => {
    const letters = Array.from({ length: LETTERS_OF_CODE }, () => LETTERS[randomInt(LETTERS.length)])
    return `${letters.slice(0, 5).join('')}-${letters.slice(5).join('')}`
  })
  await query('delete from recovery_codes where person_id = $1', [personId])
  await query('insert into recovery_codes (person_id, hash) select $1, unnest($2::bytea[])', [
    personId,
    codes.map((code) => hashOfCode(key, code)),
  ])
  return codes.map((code) => new Secret(code))
}

export async function recoveryCodesLeft(query: Query, personId: Id): Promise<number> {
  const { rows } = await query(
    'select count(*)::integer as left from recovery_codes where person_id = $1 and used_at is null',
    [personId],
  )
  return z.tuple([z.object({ left: z.int() })]).parse(rows)[0].left
}
