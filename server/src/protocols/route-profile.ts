/** How the upstreams of a route differ from what their protocol says. An operator declares it, or has it measured. */
export type RouteProfile = {
  /** The member by which they limit output; it alone is sent. Null: the one that the caller wrote, or the protocol's own. */
  readonly outputLimit: string | null
  /** What becomes of members that our tables do not know. */
  readonly unknown: 'refuse' | 'pass'
  /** Whether reasoning is counted among the output tokens, or apart from them and in the total alone. */
  readonly reasoning: 'within' | 'apart'
  /** Whether they stop generating, and so counting, when we close the connection. */
  readonly abort: 'stops' | 'runs_on'
}

/** As the protocols' own documents have it. */
export const PLAIN_PROFILE: RouteProfile = {
  outputLimit: null,
  unknown: 'refuse',
  reasoning: 'within',
  abort: 'runs_on',
}
