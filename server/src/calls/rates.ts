import type { Rate, Rates, Window } from '../limits/window.ts'
import type { Row } from './query.ts'

/** The columns in which BEGIN tells what is left of a call's windows. */
export const RATES_SELECT = `request_limit::float8, requests_left::float8, extract(epoch from requests_reset_at)::float8,
  token_limit::float8, tokens_left::float8, extract(epoch from tokens_reset_at)::float8`

/** Reads them from the column on in which they begin. */
export function ratesIn(row: Row, at: number): Rates {
  return { requests: rateIn(row, at), tokens: rateIn(row, at + 3) }
}

function rateIn(row: Row, at: number): Rate | null {
  if (row.isNull(at)) return null
  return { limit: row.number(at), left: row.number(at + 1), resetAtMs: row.number(at + 2) * 1000 }
}

/** The columns in which END tells of windows as it leaves them: once for a batch, in its first row. */
export const WINDOWS_SELECT = 'window_keys, window_states'

/** How much of a window is used. */
export type WindowState = { readonly startSeconds: number; readonly requests: number; readonly tokens: number }
export type WindowStates = ReadonlyMap<string, WindowState>

/** Reads them from the column on in which they begin. */
export function windowsIn(row: Row, at: number): WindowStates {
  const states = row.tuples(at + 1)
  return new Map(
    row.texts(at).map((key, place) => {
      const [startSeconds = 0, requests = 0, tokens = 0] = states[place] ?? []
      return [key, { startSeconds, requests, tokens }]
    }),
  )
}

/** As the function writes it. */
export function windowKey(credentialId: string, group: string): string {
  return `${credentialId} ${group}`
}

/** What the tightest of a call's windows leaves at a time, by the same rule as BEGIN's. One that is over, or not there, leaves everything. */
export function ratesOf(
  windows: readonly Window[],
  stateOf: (group: string) => WindowState | undefined,
  atSeconds: number,
): Rates {
  let requests: Rate | null = null
  let tokens: Rate | null = null
  for (const { group, seconds, requestLimit, tokenLimit } of windows) {
    const used = standing(stateOf(group), seconds, atSeconds)
    const resetAtMs = (used.startSeconds + seconds) * 1_000
    requests = tighter(requests, rateOf(requestLimit, used.requests, resetAtMs))
    if (tokenLimit !== null) tokens = tighter(tokens, rateOf(tokenLimit, used.tokens, resetAtMs))
  }
  return { requests, tokens }
}

function standing(state: WindowState | undefined, seconds: Window['seconds'], atSeconds: number): WindowState {
  if (state !== undefined && state.startSeconds + seconds > atSeconds) return state
  return { startSeconds: atSeconds, requests: 0, tokens: 0 }
}

function rateOf(limit: number, used: number, resetAtMs: number): Rate {
  return { limit, left: Math.max(0, limit - used), resetAtMs }
}

function tighter(one: Rate | null, other: Rate): Rate {
  return one === null || other.left < one.left ? other : one
}
