import { PlatformFollows } from './platform-follows.ts'
import { PlatformSessions } from './platform-sessions.ts'

/** What tests may set about the platform. */
export type PlatformKnobs = Record<NumberKnob, number> & {
  /** Who is signed in where neither the address nor a cookie says so. */
  user: string
}

export type NumberKnob = keyof typeof KNOB_LIMITS

export type RefreshFault = 'fails' | 'hangs' | 'cut'

const TIMES_LIMIT = 1_000_000
/** The largest value of each knob that is a number. */
export const KNOB_LIMITS = {
  code_seconds: 86_400,
  access_token_seconds: 1_000_000,
  token_delay_ms: 600_000,
  refresh_fails: TIMES_LIMIT,
  refresh_hangs: TIMES_LIMIT,
  refresh_cuts: TIMES_LIMIT,
  follow_limit: TIMES_LIMIT,
  follow_refusals: TIMES_LIMIT,
} as const

const USUAL_KNOBS: Readonly<PlatformKnobs> = {
  user: 'sandbox_user',
  code_seconds: 30,
  access_token_seconds: 7200,
  token_delay_ms: 0,
  refresh_fails: 0,
  refresh_hangs: 0,
  refresh_cuts: 0,
  follow_limit: 50,
  follow_refusals: 0,
}

const NO_COUNTS = {
  authorizations: 0,
  denials: 0,
  code_exchanges: 0,
  failed_exchanges: 0,
  code_reuses: 0,
  refreshes: 0,
  failed_refreshes: 0,
  refresh_reuses: 0,
  revocations: 0,
  me: 0,
  follows: 0,
  follows_over: 0,
}

/** What the platform knows: its sessions, who follows whom, and how tests want it to behave. */
export class Platform {
  readonly sessions = new PlatformSessions()
  readonly follows = new PlatformFollows()
  #knobs: PlatformKnobs = { ...USUAL_KNOBS }
  #counts = { ...NO_COUNTS }

  get knobs(): Readonly<PlatformKnobs> {
    return this.#knobs
  }

  turn(knobs: Partial<PlatformKnobs>): void {
    this.#knobs = { ...this.#knobs, ...knobs }
  }

  count(what: keyof typeof NO_COUNTS): void {
    this.#counts[what] += 1
  }

  /** What is to go wrong with the refresh that has just come in. Each fault counts down as it is taken. */
  takeRefreshFault(): RefreshFault | undefined {
    const { refresh_fails, refresh_hangs, refresh_cuts } = this.#knobs
    if (refresh_fails > 0) {
      this.turn({ refresh_fails: refresh_fails - 1 })
      return 'fails'
    }
    if (refresh_hangs > 0) {
      this.turn({ refresh_hangs: refresh_hangs - 1 })
      return 'hangs'
    }
    if (refresh_cuts === 0) return undefined
    this.turn({ refresh_cuts: refresh_cuts - 1 })
    return 'cut'
  }

  /** Whether the follow that has just come in is refused, whatever its token. Counts down as it is taken. */
  takeFollowRefusal(): boolean {
    const { follow_refusals } = this.#knobs
    if (follow_refusals === 0) return false
    this.turn({ follow_refusals: follow_refusals - 1 })
    return true
  }

  summary() {
    return { ...this.#counts, ...this.#knobs }
  }

  /** Forgets everything but the numbers of the lists, which go on. */
  clear(): void {
    this.sessions.clear()
    this.follows.clear()
    this.#knobs = { ...USUAL_KNOBS }
    this.#counts = { ...NO_COUNTS }
  }
}
