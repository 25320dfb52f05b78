import type { Id } from '../kernel/ids.ts'
import type { Mode } from '../kernel/mode.ts'
import type { Nanos } from '../kernel/money.ts'
import type { Rates, Window } from '../limits/window.ts'
import type { TaskResult } from '../storage/task-results.ts'

/** What a call asks of PostgreSQL before its upstream is asked: all of it is given, or none. */
export type Call = {
  readonly id: Id
  readonly accountId: Id
  readonly credentialId: Id
  readonly operation: string
  /** Money to hold; null for what is only admitted: a quote, a poll, a free route, an invalid request. */
  readonly hold: Hold | null
  /** Tokens that are reserved of those windows that have a token limit. When the call ends, what it used takes their place. */
  readonly tokens: number
  readonly windows: readonly Window[]
  /** Without a hold, with which they would end, it is only asked whether they are free. */
  readonly claims: readonly Claim[]
  /** Set for asynchronous tasks, which continue after the response: what the row of the task says once the call is begun. */
  readonly task?: NewTask | undefined
  /** Whose spend it is, as far as it is known when the call begins; left out where nothing is. */
  readonly attribution?: Attribution | undefined
}

/** Whose spend a call is, beside its account, its key and its operation. Its route is known only when it ends. */
export type Attribution = {
  /** The model by the name that the caller asked for. */
  readonly model: string | null
  /** For whom the caller makes the call. */
  readonly endUser: EndUser | null
  /** At most 8, each name once, in the order of their names. */
  readonly tags: readonly Tag[]
}

export type EndUser = {
  /** Made from the account and a SHA-256 of the text that the caller gave, so that it is the same from call to call. */
  readonly id: Id
  /** Short, for people. */
  readonly label: string
}

export type Tag = { readonly name: string; readonly value: string }

export const TAGS_LIMIT = 8

export const NO_ATTRIBUTION: Attribution = { model: null, endUser: null, tags: [] }

export type NewTask = {
  readonly model: string
  /** Sealed as the task's. */
  readonly prompt: Buffer
}

export type Hold = {
  readonly amount: Nanos
  /** The resolved prices, as text that settlement will read. */
  readonly terms: string
  readonly allowances: readonly Id[]
  /** That of them which is the credential's own budget: nobody else spends it. */
  readonly own?: Id | undefined
}

/** A place in a set of at most `limit`: an idempotency key, a quote's single use, a slot. */
export type Claim = {
  readonly scope: string
  readonly key: string
  readonly limit: number
  readonly fingerprint: string
  /** How long it outlives a charged call; 0 for a slot, which ends with its call. */
  readonly keepSeconds: number
  /** Whether it is free as soon as the process that runs the call is dead, although the call itself is unsettled. */
  readonly endsWithOwner: boolean
}

export type Begun = { readonly outcome: 'begun' }
export type Refused =
  | { readonly outcome: 'ended' | 'account_unknown' | 'account_inactive' | 'account_suspended' | 'credential_inactive' }
  | { readonly outcome: 'requests_spent' | 'tokens_spent'; readonly window: Window }
  | { readonly outcome: 'claim_taken' | 'claim_differs'; readonly claim: Claim; readonly holder: Id | null }
  | {
      readonly outcome: 'allowance_spent'
      /** The tightest of those that refuse, and what is left of it. */
      readonly allowanceId: Id
      readonly left: Nanos
      /** All that do. */
      readonly refusing: readonly Id[]
    }
  | { readonly outcome: 'money_spent' }

/** PostgreSQL's judgement, with the account's free money, the rates, and its clock when it judged. */
export type Judgement = (Begun | Refused) & { readonly free: Nanos; readonly rates: Rates; readonly judgedAt: string }

/** What a running call is to hold from now on. Totals, so that the same again, or a smaller one that comes late, adds nothing. */
export type Extension = Pick<Call, 'id' | 'accountId' | 'windows'> & {
  readonly amount: Nanos
  /** Reserved of those windows that have a token limit. */
  readonly tokens: number
}

/** What the call holds and has reserved, by which alone its process may go: all that was asked for, or what it had before. */
export type Growth = ({ readonly outcome: 'extended' } | Ungrown) & {
  readonly held: Nanos
  readonly reserved: number
  readonly judgedAt: string
}
type Ungrown =
  /** It has ended, or nobody is known to run it any more: then this process is taken for dead. */
  | { readonly outcome: 'ended' | 'disowned' }
  | { readonly outcome: 'account_inactive' | 'account_suspended' | 'credential_inactive' }
  | { readonly outcome: 'tokens_spent'; readonly group: string; readonly left: number; readonly resetAtMs: number }
  | { readonly outcome: 'allowance_spent'; readonly allowanceId: Id; readonly left: Nanos }
  | { readonly outcome: 'money_spent'; readonly left: Nanos }

/** How a call ended. */
export type Ending = {
  readonly id: Id
  readonly accountId: Id
  /** What to charge, or null to void: the call was certainly never executed. */
  readonly amount: Nanos | null
  /** The caller got nothing although the upstream was asked: the call is voided, and the amount becomes overrun. */
  readonly forgiven: boolean
  readonly usage: Usage
  /** Set where the answer says what the call has left of its limits. */
  readonly asked?: Asked
  /** Whom the call went to, by the slot of its upstream; left out where nobody was asked. */
  readonly route?: string | undefined
  /** Set for a task: what its row says from then on. */
  readonly task?: TaskEnd
  /** Where there is evidence that it cost more than was held, or was delivered and can't be read. */
  readonly loss?: Loss
}

export type Asked = Pick<Call, 'credentialId' | 'windows'>

/** Evidence of what a call cost the operator. What is presumed, because nobody knows what became of a request, is none. */
export type Evidence = {
  readonly nanos: Nanos
  /** What the upstream says that the whole call used, at the call's prices; null where it says nothing that can be read. */
  readonly claim: Nanos | null
}

export type Loss = Evidence & { readonly route: string }

export type TaskEnd = { readonly times?: TaskTimes } & (
  | { readonly state: 'SUCCEEDED'; readonly result: TaskResult }
  | { readonly state: 'FAILED'; readonly code: string; readonly message: string }
  | { readonly state: 'CANCELED' }
)

/** When it began to run and when it ended, in Unix seconds, as far as its upstream tells. */
export type TaskTimes = { readonly scheduledSeconds: number | undefined; readonly endedSeconds: number | undefined }

/** The upstream that has a task, and its name for it. */
export type HandOver = {
  readonly id: Id
  readonly upstream: { readonly id: Id; readonly name: string; readonly slot: string; readonly mode: Mode }
  readonly name: string
  readonly state: 'PENDING' | 'RUNNING'
}

export type Usage = {
  /** Evidence times published price. */
  readonly value: Nanos
  readonly upstreamCost: Nanos
  /** Whether the upstream was asked for what can be billed, so that the call counts as one in the usage report. */
  readonly executed: boolean
  readonly failed: boolean
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
}

export type Settlement = {
  readonly outcome: 'posted' | 'voided'
  readonly charged: Nanos
  readonly overrun: Nanos
  readonly free: Nanos
  /** False where the call had ended before: then this is what it ended with. */
  readonly endedNow: boolean
  readonly settledAt: string
  /** What is left when the call has ended of the windows that it asked for; null where it asked for none. */
  readonly rates: Rates | null
}
