import type pg from 'pg'
import type { Budget } from '../../server/src/budgets/budgets.ts'
import { issueAccessToken } from '../../server/src/grants/access-tokens.ts'
import { type MadeGrant, makeGrant, type NewGrant } from '../../server/src/grants/grants.ts'
import { hashOf, makeAccessToken } from '../../server/src/identity/key-format.ts'
import type { OAuthScope } from '../../server/src/identity/resources.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos } from '../../server/src/kernel/money.ts'
import type { Role } from '../../server/src/kernel/role.ts'
import { ACTOR, ids } from './customers.ts'

/** The base_url of tests: tokens are issued for it, and processes told that it is theirs take them. */
export const AUDIENCE = 'https://api.example.com'
export const MCP_AUDIENCE = 'https://mcp.example.com/mcp'
export const FACES_ENV = {
  FAREBOX_HTTP_PUBLIC_URL: AUDIENCE,
  FAREBOX_HTTP_MCP_URL: MCP_AUDIENCE,
  FAREBOX_HTTP_TRUSTED_PROXIES: 'none',
}
export const PLENTY = { period: 'month', amount: nanos(1_000_000_000_000n) } as const

let people = 0

/** Somebody who has signed up and is a member of the workspace. */
export async function makeMember(pool: pg.Pool, workspaceId: Id, role: Role = 'owner') {
  const [personId, memberId] = [ids.next(), ids.next()]
  people += 1
  const email = `person-${people}-${personId}@example.com`
  await pool.query("insert into people (id, email, name, verified_at) values ($1, $2, 'Some One', clock_timestamp())", [
    personId,
    email,
  ])
  await pool.query('insert into members (id, workspace_id, email, role, person_id) values ($1, $2, $3, $4, $5)', [
    ...[memberId, workspaceId, email, role, personId],
  ])
  return { personId, memberId, email }
}

export type Granted = MadeGrant & {
  readonly personId: Id
  readonly memberId: Id
  readonly workspaceId: Id
  readonly token: string
}

type Wanted = Partial<Omit<NewGrant, 'budget'>> & {
  readonly workspaceId: Id
  /** Null for one that can't pay. */
  readonly budget?: Budget | null
  readonly seconds?: number
}

/** A grant of a member, made where none is given, that may spend plenty, and a token of it. */
export async function makeGranted(pool: pg.Pool, { seconds, budget = PLENTY, ...wanted }: Wanted): Promise<Granted> {
  const { workspaceId } = wanted
  const personId = wanted.personId ?? (await makeMember(pool, workspaceId, 'developer')).personId
  const made = await makeGrant({ pool, ids }, ACTOR, {
    ...{ mode: 'live', clientId: 'https://client.example.com/me.json', clientName: 'A client', audiences: [AUDIENCE] },
    ...{ scopes: ['calls'], ...wanted, personId, ...(budget !== null && { budget }) },
  })
  const { token } = await issueToken(pool, made, { ...given(wanted), ...(seconds !== undefined && { seconds }) })
  const { rows } = await pool.query<{ id: Id }>('select id from members where workspace_id = $1 and person_id = $2', [
    workspaceId,
    personId,
  ])
  return { ...made, personId, memberId: rows[0]?.id ?? '', workspaceId, token }
}

function given({ audiences, scopes }: Partial<NewGrant>): Asked {
  const [audience] = audiences ?? []
  return { ...(audience !== undefined && { audience }), ...(scopes !== undefined && { scopes }) }
}

type Asked = { readonly audience?: string; readonly scopes?: readonly OAuthScope[]; readonly seconds?: number }

/** One more token of a grant. */
export async function issueToken(
  pool: pg.Pool,
  { id, shard }: MadeGrant,
  { audience = AUDIENCE, scopes = ['calls'], seconds = 3_600 }: Asked = {},
) {
  const secret = makeAccessToken(id, shard)
  const hash = hashOf(secret)
  const expiresAt = new Date(Date.now() + seconds * 1_000)
  await issueAccessToken(pool, ACTOR, { grantId: id, hash, audience, scopes, expiresAt })
  return { token: secret.reveal(), hash }
}

/** A token whose time is over, and whose row is still there. */
export async function expiredToken(pool: pg.Pool, grant: MadeGrant) {
  const issued = await issueToken(pool, grant)
  await pool.query("update access_tokens set expires_at = clock_timestamp() - interval '1 second' where hash = $1", [
    issued.hash,
  ])
  return issued
}
