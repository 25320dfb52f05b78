import assert from 'node:assert/strict'
import type pg from 'pg'
import { request } from 'undici'
import { freePort } from '../../harness/free-port.ts'
import { type Gateway, startGateway } from '../../harness/gateways.ts'
import { accountContractHere } from '../../harness/recorded-contract.ts'
import { type SandboxProcess, startSandbox } from '../../harness/sandbox.ts'
import { bindSandbox, makeMasterKey } from '../../harness/seed.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import type { Mode } from '../../server/src/kernel/mode.ts'
import type { Role } from '../../server/src/kernel/role.ts'
import { formTokenOf } from '../../server/src/pages/form-token.ts'
import { newToken } from '../../server/src/people/tokens.ts'
import type { By } from '../../server/src/storage/audit.ts'
import { ids, makeCustomer } from '../acceptance/installation.ts'
import { createDeclared } from '../contract/declared.ts'
import { makeGranted, makeMember } from '../identity/granted.ts'
import { connect } from '../ledger/world.ts'

/** The whole service with its website, for members of workspaces. */
export type House = {
  readonly gateway: Gateway
  /** More processes on the same database, at the same address of the website as far as browsers are told. */
  readonly more: readonly Gateway[]
  readonly siteUrl: string
  readonly sandbox: SandboxProcess
  readonly pool: pg.Pool
  readonly databaseUrl: string
  readonly env: Readonly<Record<string, string>>
  readonly stop: () => Promise<void>
}

export const SUPPORT = 'help@farebox.example'

export async function startHouse(
  databaseUrl: string,
  {
    processes = 1,
    env: own = {},
    onLine,
  }: {
    readonly processes?: number
    readonly env?: Readonly<Record<string, string>>
    /** Is told every line that is logged. */
    readonly onLine?: (line: string) => void
  } = {},
): Promise<House> {
  const sandbox = await startSandbox({ smtpPort: 0 })
  const { pools } = connect(databaseUrl)
  const masterKey = makeMasterKey()
  await bindSandbox({ pool: pools.rest, masterKey, sandboxUrl: sandbox.url })
  const at = `127.0.0.1:${await freePort()}`
  const env = {
    FAREBOX_HTTP_SITE_URL: `http://${at}`,
    FAREBOX_HTTP_TRUSTED_PROXIES: '127.0.0.1/32',
    FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(),
    FAREBOX_MAIL_URL: sandbox.smtpUrl ?? '',
    FAREBOX_MAIL_FROM: 'no-reply@farebox.example',
    FAREBOX_SITE_SUPPORT: SUPPORT,
    FAREBOX_LOG_LEVEL: 'warn',
    ...own,
  }
  const gateway = await startGateway({
    databaseUrl,
    env: { ...env, FAREBOX_LISTEN_SITE: at },
    ...(onLine !== undefined && { onLine }),
  })
  const others = Array.from({ length: processes - 1 }, () =>
    startGateway({ databaseUrl, env: { ...env, FAREBOX_ROLES: 'gateway,site' } }),
  )
  const more = await Promise.all(others)
  return {
    ...{ gateway, more, siteUrl: `http://${at}`, sandbox, pool: pools.rest, databaseUrl, env },
    async stop() {
      await Promise.allSettled([...[gateway, ...more].map((one) => one.stop()), sandbox.stop()])
      await pools.close()
    },
  }
}

/** A member, where nobody asks by HTTP: what an operator sets, members can't change. */
export const MEMBER: By = { actor: 'member test', origin: {} }

/** Somebody who asks, and by what they are known. */
export type Asker = {
  readonly headers: Readonly<Record<string, string>>
  readonly personId: Id
  readonly memberId: Id
  readonly email: string
}

/** A browser in which somebody has signed in. */
export async function signedIn(pool: pg.Pool, personId: Id): Promise<Readonly<Record<string, string>>> {
  const { secret, hash } = newToken()
  await pool.query(
    `insert into browser_sessions (id, hash, person_id, expires_at, address, agent, is_complete)
     values ($1, $2, $3, clock_timestamp() + interval '1 day', '203.0.113.1', 'a test', true)`,
    [ids.next(), hash, personId],
  )
  return {
    cookie: `fb_session=${secret.reveal()}`,
    'sec-fetch-site': 'same-origin',
    'x-form-token': formTokenOf(secret.reveal()),
  }
}

/** One more member of a workspace, in a browser. */
export async function join(pool: pg.Pool, workspaceId: Id, role: Role = 'owner'): Promise<Asker> {
  const { personId, memberId, email } = await makeMember(pool, workspaceId, role)
  return { headers: await signedIn(pool, personId), personId, memberId, email }
}

type Let = {
  readonly mode?: Mode
  readonly scopes?: readonly ('account.read' | 'account.manage')[]
  readonly personId?: Id
}

/** A client that a member lets act. */
export async function letIn(
  { pool, siteUrl }: Pick<House, 'pool' | 'siteUrl'>,
  workspaceId: Id,
  { mode = 'test', scopes = ['account.manage'], personId }: Let = {},
) {
  const granted = await makeGranted(pool, {
    ...{ workspaceId, mode, scopes, budget: null, audiences: [`${siteUrl}/account/v1`] },
    ...(personId !== undefined && { personId }),
  })
  return { ...granted, headers: { authorization: `Bearer ${granted.token}` } }
}

/** A workspace with test money, a key and members of each role. */
export async function makeTeam(pool: pg.Pool, roles: readonly Role[] = ['owner']) {
  const customer = await makeCustomer(pool)
  const members = new Map<Role, Asker>()
  for (const role of roles) members.set(role, await join(pool, customer.workspaceId, role))
  return { ...customer, of: (role: Role) => members.get(role) ?? assert.fail(`no ${role}`) }
}

export type Team = Awaited<ReturnType<typeof makeTeam>>

export type Told = {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly json: Record<string, unknown>
}

type Sent = {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** A new one where it is left out. */
  readonly key?: string
}

const declared = createDeclared(accountContractHere().bytes)
let keys = 0

/** Asks as a program does. Whatever is answered must be what the document declares. */
export async function ask(
  siteUrl: string,
  who: { readonly headers: Readonly<Record<string, string>> } | null,
  path: string,
  { method = 'GET', body, headers = {}, key }: Sent = {},
): Promise<Told> {
  keys += 1
  const whole = `/account/v1${path}`
  const sent = {
    ...who?.headers,
    ...(method !== 'GET' && { 'idempotency-key': key ?? `key-${process.pid}-${keys}` }),
    ...(body !== undefined && { 'content-type': 'application/json' }),
    ...headers,
  }
  const told = await request(siteUrl + whole, {
    method,
    headers: Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== '')),
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await told.body.text()
  const heads = new Headers(
    Object.entries(told.headers).flatMap(([name, value]): [string, string][] =>
      value === undefined ? [] : [[name, [value].flat().join(', ')]],
    ),
  )
  const exchange = { method, path: whole, asked: new Headers(), status: told.statusCode, headers: heads, text }
  const wrong = declared.undeclared(exchange)
  if (wrong !== undefined)
    throw new Error(`not in the document: ${method} ${whole} → ${told.statusCode}: ${wrong}\n${text.slice(0, 800)}`)
  return { status: told.statusCode, headers: heads, text, json: jsonIn(text) }
}

function jsonIn(text: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(text))
  } catch {
    return {}
  }
}

/** A problem without what differs from request to request. */
export function plainProblem({ status, text, headers }: Told): string {
  const id = headers.get('x-request-id') ?? ''
  return `${status} ${text.replaceAll(id, '')}`
}

export const listIn = ({ json }: Told): readonly Record<string, unknown>[] =>
  Array.isArray(json.data) ? json.data.map((one) => Object(one)) : assert.fail(JSON.stringify(json))
