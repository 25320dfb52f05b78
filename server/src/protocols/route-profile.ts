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
  /** Whether everything that counts as output is streamed as it is made, or some of it is never seen: reasoning, calls of tools. */
  readonly output: 'seen' | 'hidden'
  /** The fewest bytes of text that a token has, of a thousand tokens together. */
  readonly tokenBytes: number
  /** The most tokens that they make in a second; null where nobody has said. */
  readonly topSpeed: number | null
}

/** As the protocols' own documents have it. */
export const PLAIN_PROFILE: RouteProfile = {
  outputLimit: null,
  unknown: 'refuse',
  reasoning: 'within',
  abort: 'runs_on',
  output: 'hidden',
  tokenBytes: 1,
  topSpeed: null,
}
