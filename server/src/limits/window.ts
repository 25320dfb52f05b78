/** A fixed window of a credential in a limit group: begun by the first request in it, judged by the statement that begins calls. */
export type Window = {
  readonly group: string
  readonly seconds: number
  readonly requestLimit: number
  /** Null where the group does not count tokens. */
  readonly tokenLimit: number | null
}

/** The tightest of a call's windows, for the headers of its answer. Null where no window counts that. */
export type Rates = {
  readonly requests: Rate | null
  readonly tokens: Rate | null
}

export type Rate = { readonly limit: number; readonly left: number; readonly resetAtMs: number }
