export type { Account, AccountOperationId, AccountResult, ChangeOptions, ExportLine, ExportPlace } from './account.ts'
export type { AccountOperations } from './account-contract.ts'
export type { Fetch } from './attempt.ts'
export type { Clock } from './clock.ts'
export type { Money, Operations, Quote } from './contract.ts'
export {
  BudgetError,
  CompletedError,
  ConflictError,
  ConnectionError,
  CredentialError,
  FareboxError,
  ForbiddenError,
  InvalidRequestError,
  OutcomeUnknownError,
  RateLimitError,
  ServerError,
  UnexpectedAnswerError,
} from './errors.ts'
export { Farebox, type OperationId, type Requests } from './farebox.ts'
export type { FoundRequest } from './look-up.ts'
export { readUsd, sumUsd, Usd } from './money.ts'
export type { AccountOptions, CallOptions, FareboxOptions, Names, RequestOptions } from './options.ts'
export type { Paged } from './pages.ts'
export type { Limit, Result } from './result.ts'
export type { Sdks } from './sdks.ts'
export { type Progress, type Task, TaskError, type TaskStatus, type Tasks, type WaitOptions } from './tasks.ts'

export const version = '0.2.0'
