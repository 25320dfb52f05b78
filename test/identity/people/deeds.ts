import type pg from 'pg'
import { issueAccessToken } from '../../../server/src/grants/access-tokens.ts'
import { makeGrant, revokeGrant, setGrantBudget } from '../../../server/src/grants/grants.ts'
import { systemClock } from '../../../server/src/kernel/clock.ts'
import { createIds, type Id } from '../../../server/src/kernel/ids.ts'
import { nanos } from '../../../server/src/kernel/money.ts'
import type { Role } from '../../../server/src/kernel/role.ts'
import type { People } from '../../../server/src/people/people.ts'
import { visitorOf } from '../../../server/src/people/visitor.ts'
import { SERVICE } from '../../../server/src/storage/audit.ts'

/** What somebody does, as a value that another process can be told to do. */
export type Deed =
  | { readonly do: 'sign up'; readonly email: string; readonly password: string }
  | { readonly do: 'verify'; readonly token: string }
  | { readonly do: 'reset'; readonly token: string; readonly password: string }
  | { readonly do: 'invite'; readonly by: Id; readonly workspaceId: Id; readonly email: string; readonly role: Role }
  | { readonly do: 'join'; readonly personId: Id; readonly token: string }
  | { readonly do: 'transfer'; readonly by: Id; readonly workspaceId: Id; readonly to: Id }
  | { readonly do: 'leave'; readonly personId: Id; readonly workspaceId: Id }
  | { readonly do: 'grant'; readonly personId: Id; readonly workspaceId: Id }
  | { readonly do: 'issue'; readonly grantId: Id; readonly hash: string }
  | { readonly do: 'set budget'; readonly grantId: Id; readonly amount: string }
  | { readonly do: 'revoke'; readonly grantId: Id }

export type Done = 'done' | 'nothing' | (string & {})

/** Whether it was done, came to nothing, or by which fault it was refused. */
export async function perform({ people, pool }: Doers, deed: Deed, address: string): Promise<Done> {
  try {
    return (await (begin(people, deed, address) ?? beginWithGrants(pool, deed))) === null ? 'nothing' : 'done'
  } catch (error) {
    return String(Object(error).code ?? error)
  }
}

/** By whom it is done. */
export type Doers = { readonly people: People; readonly pool: pg.Pool }

const AUDIENCE = 'https://api.example.com'
const ids = createIds({ clock: systemClock })

function beginWithGrants(pool: pg.Pool, deed: Deed): Promise<unknown> | undefined {
  const parts = { pool, ids }
  switch (deed.do) {
    case 'grant':
      return makeGrant(parts, SERVICE, {
        ...{ workspaceId: deed.workspaceId, personId: deed.personId, mode: 'live', clientId: 'one', clientName: 'One' },
        ...{ audiences: [AUDIENCE], scopes: ['calls'], budget: { period: 'day', amount: nanos(5n) } },
      })
    case 'issue':
      return issueAccessToken(pool, SERVICE, {
        ...{ grantId: deed.grantId, hash: Buffer.from(deed.hash, 'hex'), audience: AUDIENCE, scopes: ['calls'] },
        expiresAt: new Date(Date.now() + 3_600_000),
      })
    case 'set budget':
      return setGrantBudget(parts, SERVICE, deed.grantId, { period: 'total', amount: nanos(BigInt(deed.amount)) })
    case 'revoke':
      return revokeGrant(parts, SERVICE, deed.grantId)
    default:
      return undefined
  }
}

function begin(people: People, deed: Deed, address: string): Promise<unknown> | undefined {
  const visitor = visitorOf(address, 'a browser')
  switch (deed.do) {
    case 'sign up':
      return people.signUp(visitor, { name: 'Some One', email: deed.email, password: deed.password })
    case 'verify':
      return people.verify(visitor, deed.token)
    case 'reset':
      return people.reset(visitor, deed.token, deed.password)
    case 'invite':
      return people.invite(deed.by, deed.workspaceId, { email: deed.email, role: deed.role }, visitor)
    case 'join':
      return people.decideInvitation(deed.personId, deed.token, 'join', visitor)
    case 'transfer':
      return people.transfer(deed.by, deed.workspaceId, deed.to, visitor)
    case 'leave':
      return people.leave(deed.personId, deed.workspaceId, visitor)
    default:
      return undefined
  }
}
