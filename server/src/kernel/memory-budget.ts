import type { Clock } from './clock.ts'

/** What one request holds of a process's memory, from its first byte until the last one of its answer has left. */
export type Lease = {
  readonly bytes: number
  /**
   * Takes so many bytes in all. True at once where there is room, which is the usual case and costs a few additions; else
   * a promise, false where no room came in time. Who has begun waits longer, and goes first: its upstream was asked.
   */
  readonly reserve: (toBytes: number, hasBegun?: boolean) => true | Promise<boolean>
  /**
   * Takes room for a reply beside what is held already, which is the request. Where that makes it a large lease it is room for
   * `mostBytes`: if large ones waited for more, none of them might ever end.
   */
  readonly reserveReply: (replyBytes: number, mostBytes?: number) => true | Promise<boolean>
  /** What may be held of the reply now. */
  readonly replyBytes: number
  /** Takes more for a reply that needs it, `mostBytes` where it may end nowhere before. Its upstream waits meanwhile. */
  readonly growReply: (neededBytes: number, mostBytes: number) => true | Promise<boolean>
  /** The reply is there, and has so many bytes. */
  readonly shrinkReply: (replyBytes: number) => void
  /** Gives back what is beyond so many bytes in all. */
  readonly shrink: (toBytes: number) => void
  /** One more has to release it before it is over. */
  readonly keep: () => void
  /**
   * Gives back everything when the last of those who keep it has said so. The first is a caller who has left, or has its answer:
   * what has not begun gets no more from then on, and whoever waits for that is told.
   */
  readonly release: () => void
}

/** What a reply is collected within. */
export type ReplyRoom = Pick<Lease, 'replyBytes' | 'growReply'>

export type MemoryFigures = {
  readonly reservedBytes: number
  /** Of those, what belongs to leases above the size of a small one. */
  readonly largeBytes: number
  readonly leases: number
  readonly waiting: number
  /** Since the start: reservations that had to wait, and those that got nothing. */
  readonly waits: number
  readonly refusals: number
}

export type MemoryBudget = {
  /** A lease that holds nothing yet. */
  readonly open: (account: string) => Lease
  readonly figures: () => MemoryFigures
}

type Parts = {
  readonly totalBytes: number
  readonly clock: Pick<Clock, 'sleep'>
}

/** Beyond this a lease is large, and all of it comes from the part of the budget that large ones share. */
export const LARGE_BYTES = 1_048_576
/** Small leases always have the rest. */
const LARGE_PART = 3 / 4
/** Of all, and of the large part, what one account may have. Somebody else always finds room. */
const ACCOUNT_PART = 3 / 4
const ACCOUNT_LARGE_PART = 1 / 2
const WAIT_MS = 1_000
/** An upstream that was asked costs money, and a caller who does not read is cut after twice this. */
const BEGUN_WAIT_MS = 30_000
const WAITING_MOST = 256

/** A body as it came, its texts as they are read from it, and as they are sent on. */
export const REQUEST_COPIES = 3
/** What a whole reply of a model has at the most; no other has more. */
export const REPLY_MOST_BYTES = 64 * 1_048_576

/** The smallest budget in which the largest call finds room. */
export function leastBudgetFor(requestBytes: number): number {
  return Math.ceil((REQUEST_COPIES * requestBytes + REPLY_MOST_BYTES) / (LARGE_PART * ACCOUNT_LARGE_PART))
}

/** The largest request for which a budget has room, with the largest reply. */
export function largestRequestWithin(budgetBytes: number): number {
  return Math.max(0, Math.floor((budgetBytes * LARGE_PART * ACCOUNT_LARGE_PART - REPLY_MOST_BYTES) / REQUEST_COPIES))
}

/** What an account has. */
type Share = { readonly account: string; leases: number; bytes: number; largeBytes: number }
type Shortage = 'total' | 'large' | 'account' | 'account_large'
type Waiter = {
  readonly lease: Held
  readonly toBytes: number
  readonly queue: Waiter[]
  readonly tell: (isGranted: boolean) => void
  readonly deadline: AbortController
}

const largeOf = (bytes: number) => (bytes > LARGE_BYTES ? bytes : 0)

/**
 * One budget for all bytes that a process holds for requests, replies and unread answers. What has no room waits shortly, in
 * order of arrival, or gets none. A reply that takes a large lease has all that it can need, and never waits again: what is
 * held always comes free.
 */
export function createMemoryBudget({ totalBytes, clock }: Parts): MemoryBudget {
  return new Budget(totalBytes, clock)
}

/** For a listener whose requests are few and small. */
export function unboundedMemory(clock: Pick<Clock, 'sleep'>): MemoryBudget {
  return new Budget(Number.POSITIVE_INFINITY, clock)
}

class Budget implements MemoryBudget {
  readonly #clock: Pick<Clock, 'sleep'>
  readonly #totalMost: number
  readonly #largeMost: number
  readonly #accountMost: number
  readonly #accountLargeMost: number
  readonly #shares = new Map<string, Share>()
  /** In the order in which they are served. */
  readonly #begun: Waiter[] = []
  readonly #small: Waiter[] = []
  readonly #large: Waiter[] = []
  #bytes = 0
  #largeBytes = 0
  #leases = 0
  #waits = 0
  #refusals = 0

  constructor(totalBytes: number, clock: Pick<Clock, 'sleep'>) {
    this.#clock = clock
    this.#totalMost = totalBytes
    this.#largeMost = totalBytes * LARGE_PART
    this.#accountMost = totalBytes * ACCOUNT_PART
    this.#accountLargeMost = totalBytes * LARGE_PART * ACCOUNT_LARGE_PART
  }

  open(account: string): Lease {
    let share = this.#shares.get(account)
    if (share === undefined) {
      share = { account, leases: 0, bytes: 0, largeBytes: 0 }
      this.#shares.set(account, share)
    }
    share.leases += 1
    this.#leases += 1
    return new Held(this, share)
  }

  figures(): MemoryFigures {
    return {
      reservedBytes: this.#bytes,
      largeBytes: this.#largeBytes,
      leases: this.#leases,
      waiting: this.#begun.length + this.#small.length + this.#large.length,
      waits: this.#waits,
      refusals: this.#refusals,
    }
  }

  reserve(lease: Held, toBytes: number, hasBegun: boolean): true | Promise<boolean> {
    if (toBytes <= lease.bytes) return true
    const queue = hasBegun ? this.#begun : toBytes > LARGE_BYTES ? this.#large : this.#small
    if (this.#begun.length + queue.length === 0 && this.#shortage(lease, toBytes) === undefined) {
      this.resize(lease, toBytes)
      return true
    }
    return this.#wait(lease, toBytes, queue)
  }

  resize(lease: Held, toBytes: number): void {
    const { share, bytes } = lease
    const more = toBytes - bytes
    const moreLarge = largeOf(toBytes) - largeOf(bytes)
    lease.bytes = toBytes
    share.bytes += more
    share.largeBytes += moreLarge
    this.#bytes += more
    this.#largeBytes += moreLarge
  }

  /** What was given back may be what somebody waits for. */
  serve(): void {
    if (this.#begun.length + this.#small.length + this.#large.length === 0) return
    const lacks = new Lacks()
    for (const waiter of [...this.#begun, ...this.#small, ...this.#large]) {
      const { lease, toBytes } = waiter
      // Nobody is overtaken by who would take what the other waits for.
      if (lacks.anyOf(lease.share, toBytes)) continue
      const shortage = this.#shortage(lease, toBytes)
      if (shortage === undefined) {
        this.resize(lease, toBytes)
        this.#leave(waiter, true)
      } else lacks.add(shortage, lease.share)
    }
  }

  /** Nobody waits for more of it any longer; who came after may not have to either. */
  callOff({ waiter }: Held): void {
    if (waiter === undefined) return
    this.#leave(waiter, false)
    this.serve()
  }

  /** The same, unless what waits has begun. */
  callOffUnbegun(lease: Held): void {
    if (lease.waiter?.queue !== this.#begun) this.callOff(lease)
  }

  close(lease: Held): void {
    const { share } = lease
    this.callOff(lease)
    this.#leases -= 1
    share.leases -= 1
    if (share.leases === 0) this.#shares.delete(share.account)
  }

  /** What there is too little of; undefined where there is room. */
  #shortage({ share, bytes }: Held, toBytes: number): Shortage | undefined {
    const more = toBytes - bytes
    const moreLarge = largeOf(toBytes) - largeOf(bytes)
    if (share.bytes + more > this.#accountMost) return 'account'
    if (moreLarge > 0 && share.largeBytes + moreLarge > this.#accountLargeMost) return 'account_large'
    // Whoever lacks this gets nothing by small ones giving way, and does not keep them waiting.
    if (moreLarge > 0 && this.#largeBytes + moreLarge > this.#largeMost) return 'large'
    return this.#bytes + more > this.#totalMost ? 'total' : undefined
  }

  #wait(lease: Held, toBytes: number, queue: Waiter[]): true | Promise<boolean> {
    if (lease.isOver || lease.waiter !== undefined || queue.length >= WAITING_MOST) return this.#refuse()
    if (toBytes > Math.max(this.#accountLargeMost, LARGE_BYTES)) return this.#refuse()
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const deadline = new AbortController()
    const waiter = { lease, toBytes, queue, tell: resolve, deadline }
    lease.waiter = waiter
    queue.push(waiter)
    // There may be room all the same, where those before wait for what only their own account lacks.
    this.serve()
    if (lease.bytes === toBytes) return true
    this.#waits += 1
    const waitMs = queue === this.#begun ? BEGUN_WAIT_MS : WAIT_MS
    this.#clock.sleep(waitMs, deadline.signal).then(
      () => {
        this.#leave(waiter, false)
        this.serve()
      },
      () => {},
    )
    return promise
  }

  #refuse(): Promise<boolean> {
    this.#refusals += 1
    return Promise.resolve(false)
  }

  #leave(waiter: Waiter, isGranted: boolean): void {
    const { lease, queue, tell, deadline } = waiter
    if (lease.waiter !== waiter) return
    lease.waiter = undefined
    queue.splice(queue.indexOf(waiter), 1)
    if (!isGranted) this.#refusals += 1
    deadline.abort()
    tell(isGranted)
  }
}

/** What those lack who come first. */
class Lacks {
  #total = false
  #large = false
  readonly #accounts = new Set<Share>()
  readonly #largeOfAccounts = new Set<Share>()

  add(shortage: Shortage, share: Share): void {
    if (shortage === 'total') this.#total = true
    else if (shortage === 'large') this.#large = true
    else if (shortage === 'account') this.#accounts.add(share)
    else this.#largeOfAccounts.add(share)
  }

  /** Whether a lease of so many bytes would take of that. */
  anyOf(share: Share, toBytes: number): boolean {
    if (this.#total || this.#accounts.has(share)) return true
    return toBytes > LARGE_BYTES && (this.#large || this.#largeOfAccounts.has(share))
  }
}

class Held implements Lease {
  readonly #budget: Budget
  readonly share: Share
  bytes = 0
  waiter: Waiter | undefined
  /** What the request has. */
  #requestBytes = 0
  #keepers = 1
  /** One of those who keep it has gone: the caller, because a call ends only when it is over for its handler too. */
  #isLeft = false

  constructor(budget: Budget, share: Share) {
    this.#budget = budget
    this.share = share
  }

  get isOver(): boolean {
    return this.#keepers === 0
  }

  reserve(toBytes: number, hasBegun = false): true | Promise<boolean> {
    // Nothing begins for a caller who has left.
    if (this.isOver || (this.#isLeft && !hasBegun)) return Promise.resolve(false)
    return this.#budget.reserve(this, toBytes, hasBegun)
  }

  reserveReply(replyBytes: number, mostBytes = replyBytes): true | Promise<boolean> {
    this.#requestBytes = this.bytes
    const isLarge = this.bytes + replyBytes > LARGE_BYTES
    return this.reserve(this.bytes + (isLarge ? mostBytes : replyBytes))
  }

  get replyBytes(): number {
    return this.bytes - this.#requestBytes
  }

  growReply(neededBytes: number, mostBytes: number): true | Promise<boolean> {
    // Twice as much each time as long as it is small; then all at once, so that it never waits again.
    const smallBytes = Math.min(mostBytes, LARGE_BYTES - this.#requestBytes)
    const replyBytes = neededBytes <= smallBytes ? Math.min(2 * neededBytes, smallBytes) : mostBytes
    return this.reserve(this.#requestBytes + replyBytes, true)
  }

  shrinkReply(replyBytes: number): void {
    this.shrink(this.#requestBytes + replyBytes)
  }

  shrink(toBytes: number): void {
    this.#budget.callOff(this)
    if (toBytes >= this.bytes) return
    this.#budget.resize(this, toBytes)
    this.#budget.serve()
  }

  keep(): void {
    if (!this.isOver) this.#keepers += 1
  }

  release(): void {
    if (this.isOver) return
    this.#keepers -= 1
    this.#isLeft = true
    this.#budget.callOffUnbegun(this)
    if (this.#keepers > 0) return
    this.#budget.close(this)
    this.#budget.resize(this, 0)
    this.#budget.serve()
  }
}
