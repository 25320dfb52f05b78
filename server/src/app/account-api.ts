import type pg from 'pg'
import { accountDraft } from '../account/account-draft.ts'
import { createAuthenticate } from '../account/authenticate.ts'
import { answerMember } from '../account/guard.ts'
import { type AccountInProcess, createInProcess } from '../account/in-process.ts'
import type { AccountParts } from '../account/parts.ts'
import { ACCOUNT_PREFIX } from '../account/route.ts'
import { ACCOUNT_ROUTES } from '../account/routes.ts'
import { createTurns } from '../api/turns.ts'
import type { Operation } from '../catalogue/operation.ts'
import { createContract } from '../contracts/contract.ts'
import type { Family } from '../http/families.ts'
import { jsonFamily } from '../http/json-routes.ts'
import { createFailuresByAddress } from '../identity/failures-by-address.ts'
import { audienceOf } from '../identity/resources.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Ids } from '../kernel/ids.ts'
import { isMailAddress } from '../kernel/mail-address.ts'
import { once } from '../kernel/once.ts'
import type { Seal } from '../kernel/seal.ts'
import { createBrowserRequests } from '../pages/browser-requests.ts'
import { createCheckScopes } from '../pricing/check-scopes.ts'
import { sendMailOf } from './infrastructure.ts'

type Parts = Pick<AccountParts, 'people' | 'tasks' | 'links' | 'time' | 'siteUrl' | 'requestWatch'> & {
  readonly pool: pg.Pool
  /** What our own pages ask by. */
  readonly pagesPool: pg.Pool
  readonly ids: Ids
  readonly clock: Clock
  readonly seal: Seal | null
  /** As the operator wrote it; undefined where nobody did. */
  readonly ownUrl: string | undefined
  /** Who issues tokens; undefined where nobody does. */
  readonly issuer: string | undefined
  readonly provider: string
  readonly operations: readonly Operation[]
  readonly rerankModels: readonly string[]
  /** Where people get help: a mailbox, or a page. */
  readonly support: string | undefined
}

/** The most that a change has. */
const BODY_BYTES = 65_536

/** The account API, for programs and for our own pages: made of what identity, ledger, tasks and links do, for members who have signed in. */
export function createAccountApi(given: Parts): { readonly family: Family; readonly inProcess: AccountInProcess } {
  const {
    pool,
    pagesPool,
    requestWatch,
    ids,
    clock,
    seal,
    ownUrl,
    issuer,
    provider,
    people,
    tasks,
    links,
    time,
    siteUrl,
    support,
  } = given
  const failures = createFailuresByAddress({ clock })
  const audience = issuer === undefined ? null : audienceOf(issuer + ACCOUNT_PREFIX)
  const parts: AccountParts = {
    ...{ pool, ids, time, people, tasks, links, siteUrl, failures, requestWatch },
    authenticate: createAuthenticate({
      ...{ pool, people, failures, audience, browser: createBrowserRequests({ siteUrl: ownUrl }) },
    }),
    // The other half is for those who look up callers' keys.
    turns: createTurns({ clock, together: Math.floor(pool.options.max / 2) }),
    checkScopes: createCheckScopes(given),
    sendMail: sendMailOf(given),
    operatorMail: seal !== null && support !== undefined && isMailAddress(support) ? support : null,
    document: once(async () => {
      const { bytes } = createContract(await accountDraft(), { names: { provider }, serverUrl: ownUrl })
      return bytes
    }),
  }
  return {
    family: jsonFamily({
      ...{ name: 'account', prefix: ACCOUNT_PREFIX, bodyBytes: BODY_BYTES },
      routes: ACCOUNT_ROUTES.map((route) => ({ ...route, answer: (request) => answerMember(parts, route, request) })),
    }),
    inProcess: createInProcess({
      ...{ ...parts, pool: pagesPool, nextId: ids.next },
      turns: createTurns({ clock, together: pagesPool.options.max }),
    }),
  }
}
