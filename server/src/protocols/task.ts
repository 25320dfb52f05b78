/** What an upstream says of a task. What was made, and what a canceled one has used, is in the words of its own protocol. */
export type TaskReport<Made, Used> = { readonly times: ToldTimes } & (
  | { readonly state: 'PENDING' }
  | { readonly state: 'RUNNING' }
  | { readonly state: 'UNKNOWN' }
  | ({ readonly state: 'SUCCEEDED' } & Made)
  | { readonly state: 'FAILED'; readonly code: string; readonly message: string }
  | ({ readonly state: 'CANCELED' } & Used)
)

/** By the upstream's clock and in its time zone, which it does not tell, in milliseconds; as far as they are said. */
export type ToldTimes = {
  readonly submittedMs: number | undefined
  readonly scheduledMs: number | undefined
  readonly endedMs: number | undefined
}
