import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { Random } from '../../sandbox/src/random.ts'
import { revokeKey } from '../../server/src/identity/keys.ts'
import { Fault } from '../../server/src/kernel/fault.ts'
import type { Id } from '../../server/src/kernel/ids.ts'
import { nanos, usd } from '../../server/src/kernel/money.ts'
import { creditAccount } from '../../server/src/ledger/credit.ts'
import { reverseCharge, reversePayment } from '../../server/src/ledger/reverse.ts'
import { setPrice } from '../../server/src/pricing/prices.ts'
import { listLost } from '../../server/src/tasks/operate.ts'
import type { Cluster } from './cluster.ts'
import type { History } from './history.ts'
import { ACTOR, ids, type Key, makeKey, type Name, type Person } from './people.ts'
import { attach, byCreation } from './resolve-tasks.ts'

/** Those who change money, keys and prices beside the calls, each command repeated by its id until it is answered. */
export type Operators = {
  readonly stop: () => Promise<void>
  /** Repeats what was never answered, now that everything is well. */
  readonly finish: () => Promise<void>
}

type Parts = {
  readonly seed: number
  readonly people: readonly Person[]
  readonly pool: pg.Pool
  readonly upstream: Pick<Cluster['upstream'], 'videoTasks'>
  readonly history: History
}

type Command = {
  readonly what: string
  readonly accountId: Id
  readonly subject: Id
  readonly operation?: string
  readonly run: () => Promise<bigint | boolean | undefined>
  readonly done?: () => unknown
}

const REPEAT_MS = 300
/** How often somebody sends a command twice at once. */
const TWICE = 0.2
const FINISH_TRIES = 20

export function startOperators({ seed, people, pool, upstream, history }: Parts): Operators {
  const random = new Random(seed * 7 + 3)
  const unanswered: Command[] = []
  const takenBack = new Set<Id>()
  let isOver = false
  const person = (name: Name) => {
    const found = people.find((one) => one.name === name)
    if (found === undefined) throw new Error(`nobody is called ${name}`)
    return found
  }

  /** Once; whether it was answered. */
  async function attempt({ what, accountId, subject, operation: sold, run, done }: Command): Promise<boolean> {
    const operation = history.invoke({ client: 'operator', what, accountId, subject, ...(sold && { operation: sold }) })
    try {
      const amount = await run()
      // Noted first: whatever is judged by it must not come before it.
      done?.()
      history.end(operation, 'ok', typeof amount === 'bigint' ? { amount } : {})
      return true
    } catch (error) {
      const refused =
        error instanceof Error && 'severity' in error && 'code' in error && /^(22|23|42|P0)/.test(String(error.code))
      history.end(operation, refused ? 'fail' : 'unknown', { error: error instanceof Error ? error.message : '' })
      return refused
    }
  }

  /** Changes money, now and then by sending the command twice from the beginning, as who presses a button twice does. */
  async function enter(command: Command): Promise<void> {
    const again = random.chance(TWICE) ? attempt(command) : undefined
    await persist(command)
    await again
  }

  async function persist(command: Command): Promise<void> {
    while (!(await attempt(command))) {
      if (isOver) {
        unanswered.push(command)
        return
      }
      await delay(REPEAT_MS)
    }
  }

  function topUp(of: Person, amount: string): Promise<void> {
    const [entryId, { accountId }] = [ids.next(), of]
    return enter({
      what: 'top-up',
      accountId,
      subject: entryId,
      run: () => creditAccount(pool, { entryId, accountId, kind: 'payment', amount: usd(amount) }),
      done: () => of.payments.push(entryId),
    })
  }

  /** In part or in whole, until nothing is left of any payment: what is taken is more than the account has free. */
  async function refund(of: Person): Promise<void> {
    const left = of.payments.filter((id) => !takenBack.has(id))
    const paymentId = left[random.between(0, left.length - 1)]
    if (paymentId === undefined) return
    const most = usd(random.pick(['0.02', '5']))
    const reversal = { reversalId: ids.next(), paymentId, most, kind: 'payment_reversal' } as const
    const command = { accountId: of.accountId, subject: reversal.reversalId }
    const done = () => most === usd('5') && takenBack.add(paymentId)
    await enter({ ...command, what: 'refund', run: () => reversePayment(pool, reversal), done })
  }

  /** Gives back a charge that somebody was told of, in part or in whole. */
  async function giveBack(): Promise<void> {
    const charged = history.operations.filter(({ told }) => (told.costNanos ?? 0n) > 0n)
    const { told, accountId } = charged[random.between(0, charged.length - 1)] ?? {}
    if (told?.id === undefined || told.costNanos === undefined || accountId === undefined) return
    const [reversalId, chargeId, most] = [ids.next(), told.id, nanos(told.costNanos / BigInt(random.between(1, 3)))]
    const run = () => reverseCharge(pool, reversalId, chargeId, most)
    await enter({ what: 'charge reversal', accountId, subject: reversalId, run })
  }

  async function replaceKey(of: Person): Promise<void> {
    const key = of.keys.find(({ revokedAtMs }) => revokedAtMs === Number.POSITIVE_INFINITY)
    if (key === undefined) return
    const made: Key[] = []
    const create = async () => {
      made.push(await makeKey(pool, of.workspaceId))
      return undefined
    }
    const command = { accountId: of.accountId, subject: key.id }
    if (await attempt({ ...command, what: 'new key', run: create })) of.keys.push(...made)
    const run = async () => {
      await revokeKey({ pool, ids }, ACTOR, key.id)
      return undefined
    }
    const done = () => {
      key.revokedAtMs = Date.now()
      // Kept for a while, so that clients go on trying it.
      if (of.keys.length > KEYS_KEPT) of.keys.shift()
    }
    await persist({ ...command, what: 'revocation', run, done })
  }

  async function changePrice(): Promise<void> {
    const operation = random.pick(['tag_detail', 'tweet_quotes', 'rerank'])
    const unitPrice = operation === 'rerank' ? `0.0000000${random.between(30, 90)}` : `0.00${random.between(1, 6)}`
    const run = async () => BigInt(await setPrice(pool, { operation, unitPrice }))
    await attempt({ what: 'price', accountId: person('rich').accountId, subject: operation, operation, run })
  }

  /** Finds one task whose creation was lost in the upstream's own list, and says its name. */
  async function findLost(): Promise<void> {
    const found = await Promise.all([listLost(pool), upstream.videoTasks()]).catch(() => undefined)
    if (found === undefined) return
    const [lost, made] = [found[0], byCreation(found[1])]
    const [id] = lost.map((task) => task.id).filter((one) => made.has(one))
    const name = made.get(id ?? '')?.task_id
    if (id === undefined || name === undefined) return
    const run = async () => {
      await attach(pool, id, name).catch((error: unknown) => {
        // It was said before, and the task has ended since.
        if (!(error instanceof Fault)) throw error
      })
      return undefined
    }
    await enter({ what: 'attachment', accountId: person('filming').accountId, subject: id, run })
  }

  async function again(everyMs: number, work: () => Promise<void>): Promise<void> {
    while (!isOver) {
      await delay(everyMs * (0.5 + random.fraction()))
      if (!isOver) await work()
    }
  }

  const works = Promise.all([
    again(900, () => topUp(person('poor'), random.pick(['0.01', '0.02', '0.05']))),
    again(4_000, () => topUp(person('scant'), random.pick(['0.008', '0.016']))),
    again(1_600, () => topUp(person('refunded'), random.pick(['0.05', '0.2']))),
    again(700, () => refund(person('refunded'))),
    again(900, giveBack),
    again(1_500, () => replaceKey(person('rotating'))),
    again(1_300, changePrice),
    again(5_000, findLost),
  ])
  return {
    async stop() {
      isOver = true
      await works
    },
    async finish() {
      for (const command of unanswered) {
        let tries = 0
        while (!(await attempt(command))) {
          tries += 1
          if (tries > FINISH_TRIES) throw new Error(`${command.what} ${command.subject} is not answered`)
          await delay(REPEAT_MS)
        }
      }
    },
  }
}

const KEYS_KEPT = 4
