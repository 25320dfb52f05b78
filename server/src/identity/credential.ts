import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import type { Face } from './faces.ts'
import type { Parsed } from './key-format.ts'
import type { KeyTerms } from './key-terms.ts'

/** A key or an access token that is right: what its caller is made of. The same object for as long as nothing of it changes. */
export type Credential = {
  /** Of the key, or of the token's grant. */
  readonly id: Id
  readonly workspaceId: Id
  readonly accountId: Id
  readonly mode: Mode
  readonly allowanceId: Id | null
  readonly terms: KeyTerms
  readonly token: TokenAccess | null
}

/** What an access token may do on the face that it came to. */
export type TokenAccess = {
  /** Make calls, or use tools that do. */
  readonly mayCall: boolean
  /** See what the whole account uses. */
  readonly mayReadAccount: boolean
}

/** One kind of credential: where it is found. */
export type Source = {
  /** From memory, at once; undefined where it is not there, or not right. */
  readonly peek: (given: Parsed, face: Face) => Credential | undefined
  /** As it is now. Whatever is found, the same work is done, so that its time tells nothing. */
  readonly lookUp: (given: Parsed, face: Face) => Promise<Credential | undefined>
}
