import { ACCOUNT_OPERATIONS, type AccountOperations } from './account-contract.ts'
import type { Answered } from './attempt.ts'
import { baseUrlOf, newKey, requireIdempotencyKey, requireKey } from './checks.ts'
import type { AccountOptions, RequestOptions } from './options.ts'
import { type Paged, paged } from './pages.ts'
import { type Result, resultOf } from './result.ts'
import type { Wanted } from './send.ts'
import { routeOf, wireOf } from './wire.ts'

export type AccountOperationId = keyof AccountOperations

export type ChangeOptions = RequestOptions & {
  /** Your own key: a change with the same key is made once. Made up where there is none. */
  readonly idempotencyKey?: string
  /** The `etag` of what you read, for updates; `*` for whatever is there. */
  readonly ifMatch?: string
}

/** An answer of the account API, and the ETag that an update of it takes. */
export type AccountResult<Data> = Pick<Result<Data>, 'data' | 'requestId' | 'headers'> & {
  readonly etag: string | null
  /** Whether the change was made before; then secrets are null. */
  readonly isReplay: boolean
}

type Lists = {
  [Id in AccountOperationId]: AccountOperations[Id]['answer'] extends { data: (infer _)[]; next_cursor: string | null }
    ? Id
    : never
}[AccountOperationId]
type ItemOf<Id extends Lists> = AccountOperations[Id]['answer']['data'][number]

/** What members see and change of their workspaces. */
export type Account = {
  readonly call: <Id extends AccountOperationId>(
    operation: Id,
    input: AccountOperations[Id]['input'],
    options?: ChangeOptions,
  ) => Promise<AccountResult<AccountOperations[Id]['answer']>>
  /** A list, page by page as it is walked. */
  readonly list: <Id extends Lists>(
    operation: Id,
    input: Omit<AccountOperations[Id]['input'], 'cursor'>,
    options?: RequestOptions,
  ) => Paged<ItemOf<Id>, AccountOperations[Id]['answer']>
}

type Parts = {
  readonly options: AccountOptions | undefined
  readonly word: string
  readonly answered: (wanted: Wanted, options: RequestOptions) => Promise<Answered>
}

export function createAccount({ options: given, word, answered }: Parts): Account {
  const whole = async <Data>(
    operation: AccountOperationId,
    input: Readonly<Record<string, unknown>>,
    options: ChangeOptions,
  ): Promise<Result<Data>> => {
    if (given === undefined) throw new TypeError('Pass account: { siteUrl, token } to use the account API.')
    requireKey(given.token)
    const { idempotencyKey = newKey(), ifMatch, ...how } = options
    requireIdempotencyKey(idempotencyKey)
    const route = routeOf(ACCOUNT_OPERATIONS[operation])
    const isWrite = route.method !== 'GET'
    // What is sent has the mode in its address, and all else in its body.
    const { mode, ...body } = input
    const isInBody = route.method === 'POST' || route.method === 'PATCH'
    const aimed = isInBody && mode !== undefined ? { ...route, path: `${route.path}?mode=${mode}` } : route
    const headers = {
      authorization: `Bearer ${given.token}`,
      accept: 'application/json',
      ...(isWrite && { 'idempotency-key': idempotencyKey }),
      ...(ifMatch !== undefined && { 'if-match': ifMatch }),
    }
    const wire = wireOf(aimed, isInBody ? body : input, { baseUrl: baseUrlOf(given.siteUrl), names: {} }, headers)
    // With its key a change is made once, so that it may be sent again whatever became of it.
    const heard = await answered({ wire, isPaid: false, idempotencyKey: isWrite ? idempotencyKey : undefined }, how)
    return resultOf<Data>(heard, { word, idempotencyKey })
  }

  return {
    async call(operation, input, options = {}) {
      const { data, requestId, headers } = await whole<AccountOperations[typeof operation]['answer']>(
        operation,
        input,
        options,
      )
      return {
        ...{ data, requestId, headers, etag: headers.get('etag') },
        isReplay: headers.get('idempotency-replayed') === 'true',
      }
    },
    list: (operation, input, options = {}) =>
      paged<ItemOf<typeof operation>, AccountOperations[typeof operation]['answer']>({
        read: (cursor) => whole(operation, { ...input, ...(cursor !== undefined && { cursor }) }, options),
        itemsOf: ({ data }) => data,
        nextOf: ({ next_cursor }) => next_cursor,
      }),
  }
}
