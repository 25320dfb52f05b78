import type { Caller } from '../identity/caller.ts'
import { allowsModel, allowsOperation, mayAllowModel, type Sought } from '../identity/scopes.ts'
import { Fault } from '../kernel/fault.ts'

/**
 * Throws where no scope of the key lets it use an operation. Where that depends on the model, it is not known before the request has
 * been read: `requireModelScope` says so then.
 */
export function requireScope({ scopes, token }: Caller, sought: Sought): void {
  if (token?.mayCall === false)
    throw new Fault('forbidden', { detail: "The access token's scopes do not include calls." })
  if (token?.mandate.isPaused === true) throw new Fault('mandate_paused')
  if (scopes === null || allowsOperation(scopes, sought) || mayAllowModel(scopes, sought)) return
  throw new Fault('forbidden', { detail: notIncluded(token, sought.id) })
}

function notIncluded(token: Caller['token'], what: string): string {
  return token === null
    ? `The key's scopes do not include ${what}.`
    : `The mandate does not include ${what}. Whoever gave it can change it, or sign in again with more.`
}

/** What concerns the credential itself takes any scope of this resource; a token for another one's tools has no business here. */
export function requireOwnScope({ token }: Caller): void {
  if (token === null || token.mayCall || token.mayReadAccount) return
  throw new Fault('forbidden', { detail: "The access token's scopes do not include anything here." })
}

/** Whether it is told what the whole account has: a key is, unless it was given away; and of access tokens those whose person allowed it to read the account. */
export function seesBalance({ token, isTicket }: Pick<Caller, 'token' | 'isTicket'>): boolean {
  return token === null ? !isTicket : token.mayReadAccount
}

/** Throws where no scope of the key lets it use an operation with this model, or with the one that it has without one. */
export function requireModelScope({ scopes, token }: Caller, sought: Sought, model: string | undefined): void {
  if (scopes === null || allowsOperation(scopes, sought) || allowsModel(scopes, model)) return
  const what =
    model === undefined ? `${sought.id} without a model that they name` : `the model ${JSON.stringify(model)}`
  throw new Fault('forbidden', { detail: notIncluded(token, what) })
}
