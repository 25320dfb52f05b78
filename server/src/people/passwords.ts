import { argon2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { Fault, invalidRequest } from '../kernel/fault.ts'
import { createGate, type Gate } from '../kernel/gate.ts'

/**
 * Passwords, as Argon2id in PHC form. A hash takes 19 MiB and a core for a while, so few are made at once, few wait, and the rest are
 * refused: whoever floods the sign-in must not starve the process.
 */
export type Passwords = {
  /** Refuses a password that is too short or too long. */
  readonly hash: (password: string) => Promise<string>
  /** Takes as long where there is nothing to compare with, and is false then. */
  readonly verify: (password: string, stored: string | null, whose?: Whose) => Promise<boolean>
}

/** Who has a password compared: so few of one mailbox and of one address are at the gate, and the others wait for those. */
export type Whose = { readonly mailbox: Buffer; readonly address: Buffer }

type Cost = { readonly memory: number; readonly passes: number; readonly parallelism: number }
type Derivation = Cost & { readonly message: Buffer; readonly nonce: Buffer; readonly tagLength: number }
type Derive = (derivation: Derivation) => Promise<Buffer>

type Parts = {
  /** Hashes at once. Each takes one of the four threads that files and look-ups of names need as well. */
  readonly atOnce?: number
  readonly waiting?: number
  readonly derive?: Derive
}

const COST: Cost = { memory: 19_456, passes: 2, parallelism: 1 }
const NONCE_BYTES = 16
const TAG_BYTES = 32
const SHORTEST = 12
const LONGEST = 200
/** What somebody may send to be compared: NFKC makes at most 18 characters of one. */
const LONGEST_COMPARED = 4_000
const RETRY_SECONDS = 2
const OF_MAILBOX = 1
const OF_ADDRESS = 4

const run = promisify(argon2)
const argon2id: Derive = (derivation) => run('argon2id', derivation)

export function createPasswords({ atOnce = 2, waiting = 32, derive = argon2id }: Parts = {}): Passwords {
  const gate = createGate(atOnce)
  const [mailboxes, addresses] = [createKeyedGate(OF_MAILBOX, waiting), createKeyedGate(OF_ADDRESS, waiting)]
  /** Some wait, in their order; whoever comes after them is told to come back. */
  async function enter<T>(work: () => Promise<T>): Promise<T> {
    if (gate.isFull() && gate.waits() >= waiting) throw busy()
    return gate.pass(work)
  }
  const nobodys = phc(COST, randomBytes(NONCE_BYTES), randomBytes(TAG_BYTES))

  return {
    async hash(password) {
      const message = suitable(password)
      const nonce = randomBytes(NONCE_BYTES)
      const tag = await enter(() => derive({ ...COST, message, nonce, tagLength: TAG_BYTES }))
      return phc(COST, nonce, tag)
    },
    async verify(password, stored, whose) {
      const { cost, nonce, tag } = readPhc(stored ?? nobodys)
      const message = normalized(password.slice(0, LONGEST_COMPARED))
      const compare = () => enter(() => derive({ ...cost, message, nonce, tagLength: tag.length }))
      const derived =
        whose === undefined
          ? await compare()
          : await mailboxes.pass(whose.mailbox, () => addresses.pass(whose.address, compare))
      return timingSafeEqual(derived, tag) && stored !== null && password.length <= LONGEST_COMPARED
    },
  }
}

/** A gate for each key, while somebody is at it. */
function createKeyedGate(limit: number, waiting: number) {
  const gates = new Map<string, Gate>()
  return {
    async pass<T>(key: Buffer, work: () => Promise<T>): Promise<T> {
      const name = key.toString('base64')
      const gate = gates.get(name) ?? createGate(limit)
      if (gate.isFull() && gate.waits() >= waiting) throw busy()
      gates.set(name, gate)
      return gate.pass(work).finally(() => {
        if (gate.isEmpty()) gates.delete(name)
      })
    },
  }
}

function busy(): Fault {
  return new Fault('overloaded', { retryAfterSeconds: RETRY_SECONDS })
}

/** The same password is typed in several forms, which differ by keyboard and system. */
function normalized(password: string): Buffer {
  return Buffer.from(password.normalize('NFKC'))
}

function suitable(password: string): Buffer {
  const characters = password.length > LONGEST_COMPARED ? LONGEST_COMPARED : [...password.normalize('NFKC')].length
  if (characters < SHORTEST || characters > LONGEST)
    throw invalidRequest(`The password must have ${SHORTEST} to ${LONGEST} characters.`)
  return normalized(password)
}

const base64 = (bytes: Buffer) => bytes.toString('base64').replaceAll('=', '')

function phc({ memory, passes, parallelism }: Cost, nonce: Buffer, tag: Buffer): string {
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${base64(nonce)}$${base64(tag)}`
}

const PHC = /^\$argon2id\$v=19\$m=(\d{1,7}),t=(\d{1,3}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,64})\$([A-Za-z0-9+/]{22,86})$/

function readPhc(text: string): { readonly cost: Cost; readonly nonce: Buffer; readonly tag: Buffer } {
  const [, memory, passes, parallelism, nonce, tag] = PHC.exec(text) ?? []
  if (nonce === undefined || tag === undefined) throw new Error('a stored password is not Argon2id in PHC form')
  return {
    cost: { memory: Number(memory), passes: Number(passes), parallelism: Number(parallelism) },
    nonce: Buffer.from(nonce, 'base64'),
    tag: Buffer.from(tag, 'base64'),
  }
}
