import { setTimeout as delay } from 'node:timers/promises'
import { Random } from '../../sandbox/src/random.ts'
import { CALLS, FREE, LINKED, TASKS } from '../acceptance/installation.ts'
import type { Asked, Caller, Marks } from './caller.ts'
import { isStreamed, type Operation } from './history.ts'
import { FOLLOW_OPERATION } from './linked-accounts.ts'
import { CLIENTS, type Key, type Person } from './people.ts'
import { growingQuestion, streamedQuestion, wholeQuestion } from './questions.ts'
import { SPEECHES, speechOf } from './speeches.ts'
import { cancelPath, taskPath, videoFor } from './videos.ts'
import { saidOf } from './whose-spend.ts'

/** Clients that call, quote, repeat and look up, each by a seed of its own, until they are told to stop. */
export type Workload = {
  readonly stop: () => Promise<void>
  /** Sends again, once, what nobody said the end of, now that dead processes have been found. */
  readonly comeBack: () => Promise<void>
}

type Parts = {
  readonly seed: number
  readonly people: readonly Person[]
  readonly caller: Caller
  readonly marks: Marks
  /** Has the user of a key link an account to it. */
  readonly link: (key: Key) => Promise<void>
}

type Client = {
  readonly name: string
  readonly person: Person
  readonly random: Random
}

const PAUSE_MS = { least: 20, most: 120 }
const REFUSED_PAUSE_MS = 400
/** Who does not know what became of a key or a quote asks again after so long: its process has been found dead by then. */
const COMES_BACK_MS = 14_000
/**
 * What costs nothing has nothing to lose, only one of all has linked accounts, tasks and streams have likelihoods of their own,
 * and the last would be refused most of the time.
 */
const LEFT_OUT: ReadonlySet<string> = new Set([
  ...FREE,
  ...TASKS,
  ...LINKED,
  'stream_generate_content',
  'deep_research',
])
const OPERATIONS = Object.keys(CALLS).filter((operation) => !LEFT_OUT.has(operation))
/** Of the steps of a client, the rest being plain calls. */
const LIKELIHOOD = { stream: 0.2, idempotent: 0.14, quoted: 0.09, look: 0.08 }
/** Of the streams: those that their callers hang up on, after so long, and those that are asked for by a key. */
const HANGS_UP = 0.35
const HANGS_UP_MS = { least: 10, most: 1_200 }
const BY_KEY = 0.25
/** Of the videos: those that are canceled soon, or that somebody asks for until they have ended; nobody does for the rest. */
const CANCELED = 0.12
const WATCHED = 0.4
const CANCELED_AFTER_MS = { least: 50, most: 1_500 }
const WATCHED_EVERY_MS = { least: 500, most: 1_500 }
const LOOKS_MOST = 15

export function startWorkload({ seed, people, caller, marks, link }: Parts): Workload {
  let isOver = false
  const clients = people.flatMap((person, place) =>
    Array.from(
      { length: CLIENTS[person.name] },
      (_, at): Client => ({
        name: `${person.name} ${at}`,
        person,
        random: new Random(seed * 1_000 + place * 20 + at),
      }),
    ),
  )

  async function ask(asked: Asked): Promise<Operation> {
    const operation = await caller.ask(saying(asked))
    if (operation.told.status === 429) await delay(REFUSED_PAUSE_MS)
    if (operation.told.code === 'link_required') await link(asked.key)
    return operation
  }

  const unsure: { readonly asked: Asked; readonly sinceMs: number }[] = []
  const remember = (asked: Asked) => unsure.push({ asked, sinceMs: performance.now() })

  async function sendAgain(): Promise<void> {
    const { asked } = unsure.shift() ?? {}
    if (asked !== undefined && !isFinal(await ask(asked))) remember(asked)
  }

  async function step(client: Client): Promise<void> {
    if (performance.now() - (unsure[0]?.sinceMs ?? Number.POSITIVE_INFINITY) > COMES_BACK_MS) await sendAgain()
    const { stream, idempotent, quoted, look: looks } = LIKELIHOOD
    if (client.random.chance(client.person.films)) return makeVideo(client)
    if (client.random.chance(client.person.grows)) return callForStream(client, growingQuestion)
    const dice = client.random.fraction()
    if (dice < stream) return callForStream(client)
    if (dice < stream + idempotent) return callByKey(client)
    if (dice < stream + idempotent + quoted) return callByQuote(client)
    if (dice < stream + idempotent + quoted + looks) return look(client)
    return callPlainly(client)
  }

  async function callForStream(client: Client, questionOf = streamedQuestion): Promise<void> {
    const { random } = client
    const mark = marks.make()
    const request = marks.question(random.pick(SPEECHES), mark, questionOf(random))
    const cutAfterMs = random.between(HANGS_UP_MS.least, HANGS_UP_MS.most)
    const asked = { ...who(client), mark, ...request, ...(random.chance(HANGS_UP) && { cutAfterMs }) }
    if (random.chance(BY_KEY)) await repeatSafely(client, { ...asked, idempotencyKey: mark })
    else await ask({ ...asked, what: 'call' })
  }

  async function callByKey(client: Client): Promise<void> {
    const mark = marks.make()
    const asked = { ...who(client), mark, idempotencyKey: mark, ...requestOf(client, mark) }
    await repeatSafely(client, maybeByTool(asked))
  }

  async function callPlainly(client: Client): Promise<void> {
    const calls = Array.from({ length: client.person.atOnce }, () => {
      const mark = marks.make()
      return ask(maybeByTool({ ...who(client), what: 'call', mark, ...requestOf(client, mark) }))
    })
    await Promise.all(calls)
  }

  /** The same key two or three times at once, and again as long as nobody says what became of it. */
  async function repeatSafely(client: Client, keyed: Omit<Asked, 'what'>): Promise<readonly Operation[]> {
    const asked = { ...keyed, what: 'idempotent call' }
    const copies = Array.from({ length: client.random.between(2, 3) }, () => ask(asked))
    const answers = await Promise.all(copies)
    for (let tries = 0; tries < TRIES && !answers.some(isFinal) && !isOver; tries += 1) {
      await delay(client.random.between(150, 400))
      answers.push(await ask(asked))
    }
    if (!answers.some(isFinal)) remember(asked)
    return answers
  }

  async function callByQuote(client: Client): Promise<void> {
    const mark = marks.make()
    await askByQuote(client, { ...who(client), mark, ...requestOf(client, mark) })
  }

  async function askByQuote(client: Client, asked: Omit<Asked, 'what'>): Promise<readonly Operation[]> {
    const { told } = await ask({ ...asked, what: 'quote', isQuote: true })
    if (told.quoteId === undefined) return []
    const copies = client.random.chance(0.3) ? 2 : 1
    const call = { ...asked, what: 'quoted call', quoteId: told.quoteId }
    const answers = await Promise.all(Array.from({ length: copies }, () => ask(call)))
    if (!answers.some(isFinal)) remember(call)
    return answers
  }

  /** Makes a video plainly, by a key or by a quote, and goes on while it is being made. */
  async function makeVideo(client: Client): Promise<void> {
    const { random } = client
    const [mark, isToBeCanceled, isWatched] = [marks.make(), random.chance(CANCELED), random.chance(WATCHED)]
    const asked = { ...who(client), mark, ...marks.video(mark, videoFor(random, isToBeCanceled)) }
    const dice = random.fraction()
    let answers: readonly Operation[]
    if (dice < 0.15) answers = await repeatSafely(client, { ...asked, idempotencyKey: mark })
    else if (dice < 0.3) answers = await askByQuote(client, asked)
    else answers = [await ask({ ...asked, what: 'call' })]
    const taskId = answers.find(({ outcome }) => outcome === 'ok')?.told.taskId
    if (taskId === undefined) return
    const { client: name, person, key } = asked
    const about = { client: name, person, key, subject: taskId }
    if (isToBeCanceled) inBackground(cancel(client, about))
    if (isWatched) inBackground(watch(client, about))
  }

  type About = Pick<Asked, 'client' | 'person' | 'key'> & { readonly subject: string }

  async function cancel({ random }: Client, about: About): Promise<void> {
    await delay(random.between(CANCELED_AFTER_MS.least, CANCELED_AFTER_MS.most))
    for (let tries = 0; tries < 2 && !isOver; tries += 1) {
      const { outcome } = await ask({ ...about, what: 'cancel', path: cancelPath(about.subject), method: 'POST' })
      if (outcome === 'ok') return
    }
  }

  /** Asks for it until it has ended, and once more, or until nobody would wait any longer. */
  async function watch({ random }: Client, about: About): Promise<void> {
    let hasEnded = false
    for (let looks = 0; looks < LOOKS_MOST && !isOver; looks += 1) {
      await delay(random.between(WATCHED_EVERY_MS.least, WATCHED_EVERY_MS.most))
      const { told } = await ask({ ...about, what: 'poll', path: taskPath(about.subject) })
      if (hasEnded || told.status === 401) return
      hasEnded = ENDED.has(told.taskState ?? '')
    }
  }

  const watching = new Set<Promise<void>>()

  function inBackground(work: Promise<void>): void {
    const mine = work.finally(() => watching.delete(mine))
    watching.add(mine)
  }

  async function look(client: Client): Promise<void> {
    const path = client.random.pick(['/v1/balance', '/v1/usage?start_time=1700000000', '/v1/requests?limit=5'])
    await ask({ ...who(client), what: 'look', path })
  }

  function requestOf({ random, person: { asksFor = OPERATIONS } }: Client, mark: string) {
    const operation = asksFor[random.between(0, asksFor.length - 1)] ?? 'rerank'
    if (operation === FOLLOW_OPERATION) return marks.follow(mark)
    const speech = speechOf(operation)
    if (speech !== undefined) return marks.question(speech, mark, wholeQuestion(operation, random, wordsFor(random)))
    return marks.request(operation, mark, wordsFor(random))
  }

  async function live(client: Client): Promise<void> {
    while (!isOver) {
      await step(client)
      await delay(client.random.between(PAUSE_MS.least, PAUSE_MS.most))
    }
  }

  const lives = Promise.all(clients.map(live))
  return {
    async stop() {
      isOver = true
      await lives
      await Promise.all(watching)
    },
    async comeBack() {
      await Promise.all(unsure.map(({ asked }) => ask(asked)))
    },
  }
}

const TRIES = 4
const ENDED: ReadonlySet<string> = new Set(['SUCCEEDED', 'FAILED', 'CANCELED', 'UNKNOWN'])

/** Of what can be asked by a tool, half is. Which half is told by the mark, so that chance goes on as it would without. */
function maybeByTool<T extends Omit<Asked, 'what'>>(asked: T): T {
  const { key, mark = '', headers } = asked
  const isByTool = key.isApproved && headers === undefined && Number(mark.replaceAll(/\D/g, '')) % 2 === 0
  return isByTool ? { ...asked, isByTool } : asked
}

/** Who has budgets says of every call whose spend it is, the same each time that it is sent. */
function saying(asked: Asked): Asked {
  const { person, mark, headers } = asked
  if (person.budgets === undefined || mark === undefined) return asked
  const { team, endUser } = saidOf(mark)
  return { ...asked, headers: { ...headers, 'x-farebox-tags': `team=${team}`, 'x-farebox-end-user': endUser } }
}

function who({ name, person, random }: Client): { client: string; person: Person; key: Key } {
  // A key that was revoked is tried as well, now and then: it must not begin anything.
  const [key] = person.keys.slice(random.between(0, person.keys.length - 1))
  if (key === undefined) throw new Error(`${person.name} has no key`)
  return { client: name, person, key }
}

/** How the upstream behaves: mostly well and at its own pace, now and then slow or an error, seldom an answer that breaks off. */
function wordsFor(random: Random): string {
  const dice = random.fraction()
  if (dice < 0.03) return 'sandbox:status=500'
  if (dice < 0.05) return 'sandbox:reset=in-body'
  if (dice < 0.08) return `sandbox:delay=${random.between(1_000, 3_000)}`
  if (dice < 0.55) return `sandbox:delay=${random.between(5, 400)}`
  return ''
}

const RUNNING = new Set(['idempotency_running', 'outcome_unknown', 'billing_dependency_timeout', 'overloaded'])

/** Whether somebody said what became of the key, so that there is no reason to send it again. */
function isFinal(operation: Operation): boolean {
  const { outcome, told } = operation
  if (outcome !== 'fail') return outcome === 'ok'
  // A stream that breaks off is answered with 200 like any other.
  return !isStreamed(operation) && !RUNNING.has(told.code ?? '') && (told.status ?? 500) < 500
}
