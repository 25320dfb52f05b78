import { type Page, Ring } from '../ring.ts'
import type { User } from './platform-user.ts'

/** A follow as tests see it. */
export type ShownFollow = {
  readonly n: number
  readonly at_ms: number
  readonly user: string
  readonly user_id: string
  readonly target_user_id: string
  readonly pending_follow: boolean
  /** The `X-Request-Id` that came with it. */
  readonly request_id: string | null
}

/** How much of the quota a user has used, and when it begins anew. */
type Quarter = { readonly used: number; readonly endsAtMs: number }

const FOLLOWS_LIMIT = 200_000
const USERS_LIMIT = 100_000
const QUARTER_MS = 15 * 60_000

/** Who has followed whom, and how many requests each user has left. */
export class PlatformFollows {
  readonly #follows: Ring<ShownFollow>
  readonly #quarters = new Map<string, Quarter>()
  readonly #usersLimit: number

  constructor(followsLimit: number = FOLLOWS_LIMIT, usersLimit: number = USERS_LIMIT) {
    this.#follows = new Ring(followsLimit)
    this.#usersLimit = usersLimit
  }

  /** Each user's quarter of an hour begins with the first request in it. */
  quarterOf(userId: string, nowMs: number): Quarter {
    const quarter = this.#quarters.get(userId)
    return quarter && nowMs < quarter.endsAtMs ? quarter : { used: 0, endsAtMs: nowMs + QUARTER_MS }
  }

  useQuota(userId: string, nowMs: number): void {
    const { used, endsAtMs } = this.quarterOf(userId, nowMs)
    this.#quarters.delete(userId)
    this.#quarters.set(userId, { used: used + 1, endsAtMs })
    for (const oldest of this.#quarters.keys()) {
      if (this.#quarters.size <= this.#usersLimit) return
      this.#quarters.delete(oldest)
    }
  }

  add(user: User, follow: Pick<ShownFollow, 'at_ms' | 'target_user_id' | 'pending_follow' | 'request_id'>): void {
    this.#follows.add({ n: this.#follows.next, user: user.username, user_id: user.id, ...follow })
  }

  list(since: number): Page<ShownFollow> {
    return this.#follows.read(since)
  }

  /** Forgets everything but the numbers, which go on. */
  clear(): void {
    this.#follows.empty()
    this.#quarters.clear()
  }
}
