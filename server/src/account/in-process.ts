import { REPLAYED } from '../api/answer.ts'
import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import type { Visitor } from '../people/visitor.ts'
import type { Member } from './authenticate.ts'
import { answerMember } from './guard.ts'
import type { AccountParts } from './parts.ts'
import type { AccountRoute } from './route.ts'
import { ACCOUNT_ROUTES } from './routes.ts'

/** A request of the account API that a page of ours makes for the member whose browser it answers. */
export type AccountCall = {
  readonly operationId: string
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  /** Whose money it is about, where the record asks for that. */
  readonly mode: Mode
  readonly body?: unknown
  /** Of a change: that of the form, so that a form that is sent twice changes once. */
  readonly idempotencyKey?: string
  /** Of an update: what the page showed. */
  readonly ifMatch?: string
}

export type AccountReply = {
  readonly body: unknown
  readonly etag: string | undefined
  /** Whether the change was made before: then its secret is not told again. */
  readonly isReplayed: boolean
}

/** Who asks by a page. Its form was found to be ours before. */
export type PageMember = { readonly member: Member; readonly visitor: Visitor }

export type AccountInProcess = (who: PageMember, call: AccountCall) => Promise<AccountReply>

type Parts = Omit<AccountParts, 'authenticate'> & { readonly nextId: () => Id }

/** The records of the account API without HTTP between: the same validation, roles, turns and idempotency, so that pages can do no more. */
export function createInProcess({ nextId, ...parts }: Parts): AccountInProcess {
  const routes = new Map(ACCOUNT_ROUTES.map((route) => [route.operationId, route]))

  return async ({ member, visitor }, call) => {
    const route = routes.get(call.operationId)
    if (route === undefined) throw new Error(`the account API has no ${call.operationId}`)
    const { params = {}, body, idempotencyKey, ifMatch } = call
    const query = route.mode === 'named' ? { ...call.query, mode: call.mode } : (call.query ?? {})
    const headers: Readonly<Record<string, string | undefined>> = {
      'idempotency-key': idempotencyKey,
      'if-match': ifMatch,
    }
    const asked = {
      id: nextId(),
      visitor,
      method: route.method,
      path: pathOf(route, params),
      params,
      query,
      readBody: () => body,
    }
    const request = { ...asked, header: (name: string) => headers[name] }
    const reply = await answerMember({ ...parts, authenticate: async () => member }, route, request)
    const told = reply.headers ?? {}
    return { body: reply.body, etag: told.etag, isReplayed: REPLAYED in told }
  }
}

function pathOf({ path }: AccountRoute, params: Readonly<Record<string, string>>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => params[name] ?? '')
}
