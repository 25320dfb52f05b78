import { writeFileSync } from 'node:fs'
import type pg from 'pg'
import { hashOf, makeAccessToken } from '../../server/src/identity/key-format.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { createIds } from '../../server/src/kernel/ids.ts'

const ids = createIds({ clock: systemClock })
const PLENTY = 10n ** 15n

/** The base_url that the tokens are for. */
export const AUDIENCE = 'https://api.example.com'

/**
 * For every workspace that there is, a grant with a monthly budget and an access token, as its key has: made in bulk, as rows. Their
 * secrets are written to the file, a line each.
 */
export async function makeGrants(pool: pg.Pool, secretsFile: string): Promise<void> {
  const { rows } = await pool.query<{ workspace: string; account: string }>(
    'select id as workspace, live_account_id as account from workspaces order by id',
  )
  const made = rows.map((row) => {
    const grant = ids.next()
    return { ...row, grant, person: ids.next(), allowance: ids.next(), secret: makeAccessToken(grant, 0) }
  })
  const column = (name: 'workspace' | 'account' | 'grant' | 'person' | 'allowance') => made.map((one) => one[name])
  await pool.query(
    `with given as (
       select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[]) given (workspace, account, grant_id, person, allowance)
     ), person as (
       insert into people (id, email, name, verified_at) select person, person || '@example.com', 'bench', clock_timestamp() from given
     ), allowance as (
       insert into allowances (id, account_id, period, amount) select allowance, account, 'month', ${PLENTY} from given
     ), credential as (
       insert into credentials (id, account_id) select grant_id, account from given
     )
     insert into grants (id, workspace_id, person_id, client_id, client_name, audiences, oauth_scopes, allowance_id)
     select grant_id, workspace, person, 'bench', 'bench', '{${AUDIENCE}}', '{calls}', allowance from given`,
    [column('workspace'), column('account'), column('grant'), column('person'), column('allowance')],
  )
  await pool.query(
    `insert into access_tokens (hash, grant_id, audience, oauth_scopes, expires_at)
     select hash, grant_id, '${AUDIENCE}', '{calls}', clock_timestamp() + interval '1 day' from unnest($1::bytea[], $2::uuid[]) given (hash, grant_id)`,
    [made.map(({ secret }) => `\\x${hashOf(secret).toString('hex')}`), column('grant')],
  )
  await pool.query('analyze')
  writeFileSync(secretsFile, made.map(({ secret }) => `${secret.reveal()}\n`).join(''))
}
