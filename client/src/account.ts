import { ACCOUNT_OPERATIONS, type AccountOperations } from './account-contract.ts'
import type { Answered } from './attempt.ts'
import { baseUrlOf, newKey, requireIdempotencyKey, requireKey } from './checks.ts'
import { asRecord } from './error-body.ts'
import { errorOf, UnexpectedAnswerError } from './errors.ts'
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
  /** The lines of an export as they come; the last one is `end`. Throws where they end before it: then read it again. */
  readonly exportLines: (input: ExportPlace, options?: RequestOptions) => AsyncGenerator<ExportLine, void>
}

export type ExportPlace = { readonly workspace_id: string; readonly export_id: string }
export type ExportLine = { readonly type: string; readonly [name: string]: unknown }

type Parts = {
  readonly options: AccountOptions | undefined
  readonly word: string
  readonly answered: (wanted: Wanted, options: RequestOptions) => Promise<Answered>
  /** The same, with a good answer unread. */
  readonly streamed: (wanted: Wanted, options: RequestOptions) => Promise<Answered>
}

const DOWNLOAD = routeOf('GET /account/v1/workspaces/{workspace_id}/exports/{export_id}/data')

export function createAccount({ options: given, word, answered, streamed }: Parts): Account {
  const requireGiven = (): AccountOptions => {
    if (given === undefined) throw new TypeError('Pass account: { siteUrl, token } to use the account API.')
    requireKey(given.token)
    return given
  }

  const whole = async <Data>(
    operation: AccountOperationId,
    input: Readonly<Record<string, unknown>>,
    options: ChangeOptions,
  ): Promise<Result<Data>> => {
    const { token, siteUrl } = requireGiven()
    const { idempotencyKey = newKey(), ifMatch, ...how } = options
    requireIdempotencyKey(idempotencyKey)
    const route = routeOf(ACCOUNT_OPERATIONS[operation])
    const isWrite = route.method !== 'GET'
    // What is sent has the mode in its address, and all else in its body.
    const { mode, ...body } = input
    const isInBody = route.method === 'POST' || route.method === 'PATCH'
    const aimed = isInBody && mode !== undefined ? { ...route, path: `${route.path}?mode=${mode}` } : route
    const headers = {
      authorization: `Bearer ${token}`,
      accept: 'application/json',
      ...(isWrite && { 'idempotency-key': idempotencyKey }),
      ...(ifMatch !== undefined && { 'if-match': ifMatch }),
    }
    const wire = wireOf(aimed, isInBody ? body : input, { baseUrl: baseUrlOf(siteUrl), names: {} }, headers)
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
    async *exportLines(input, options = {}) {
      const { token, siteUrl } = requireGiven()
      const headers = { authorization: `Bearer ${token}`, accept: 'application/x-ndjson' }
      const wire = wireOf(DOWNLOAD, input, { baseUrl: baseUrlOf(siteUrl), names: {} }, headers)
      const heard = await streamed({ wire, isPaid: false }, options)
      if (heard.status !== 200) throw errorOf(heard, undefined)
      let [count, last]: [number, ExportLine] = [0, { type: '' }]
      for await (const line of linesOf(heard)) {
        count += 1
        last = line
        yield line
      }
      const told = Object.values(asRecord(last.counts)).reduce<number>((sum, one) => sum + Number(one), 1)
      if (last.type !== 'end' || told !== count) throw notWhole(heard)
    },
  }
}

async function* linesOf(heard: Answered): AsyncGenerator<ExportLine> {
  const reader = heard.response.body?.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const read = await reader?.read().catch((cause: unknown) => {
        throw notWhole(heard, cause)
      })
      if (read?.value === undefined) return
      const lines = (rest + decoder.decode(read.value, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) yield JSON.parse(line)
    }
  } finally {
    // Whoever has enough of it does not keep the connection.
    await reader?.cancel().catch(() => {})
  }
}

function notWhole({ status, headers }: Answered, cause?: unknown): UnexpectedAnswerError {
  return new UnexpectedAnswerError('The export ended before its last line. Read it again.', {
    ...{ code: 'unexpected_answer', status, requestId: headers.get('x-request-id') ?? '', cause },
  })
}
