import { isObject } from '../json.ts'

/** What goes wrong with a message. */
export type MailFault = {
  /** The answer of which a refusal consists. */
  readonly status?: number
  /** Where it is given: when the receiver is named, or when the message has come. */
  readonly at: 'rcpt' | 'data'
  readonly delayMs: number
  /** The connection is cut before a byte of the message, or once it was taken and before that is said. */
  readonly reset?: 'before-data' | 'after-data'
  /** It was taken, and nothing is ever said. */
  readonly hangs: boolean
}

export type WaitingFault = {
  readonly directives: readonly string[]
  /** Only for receivers whose address has this in it. */
  readonly to?: string
  readonly times: number
}

export const NO_FAULT: MailFault = { at: 'rcpt', delayMs: 0, hangs: false }

const FAULTS_LIMIT = 1000
const TIMES_LIMIT = 1_000_000
const DIRECTIVES_LIMIT = 8
const DELAY_LIMIT_MS = 600_000
const TO_LIMIT = 256

/** Faults for the next messages, the oldest first. */
export class MailFaults {
  #faults: WaitingFault[] = []

  take(to: string): MailFault {
    const at = this.#faults.findIndex((fault) => to.includes(fault.to ?? ''))
    const fault = this.#faults[at]
    if (fault === undefined) return NO_FAULT
    if (fault.times > 1) this.#faults[at] = { ...fault, times: fault.times - 1 }
    else this.#faults.splice(at, 1)
    const read = faultOf(fault.directives)
    return typeof read === 'string' ? NO_FAULT : read
  }

  /** Takes a fault as it came over HTTP; says what is wrong with it, if anything is. */
  add(value: unknown): string | undefined {
    const fault = waitingFaultIn(value)
    if (typeof fault === 'string') return fault
    if (this.#faults.length >= FAULTS_LIMIT) return `there are ${FAULTS_LIMIT} faults waiting already`
    this.#faults.push(fault)
    return undefined
  }

  waiting(): readonly WaitingFault[] {
    return this.#faults
  }

  clear(): void {
    this.#faults = []
  }
}

function waitingFaultIn(value: unknown): WaitingFault | string {
  if (!isObject(value)) return 'send { directives, times, to }'
  const { directives, times = 1, to } = value
  if (!Array.isArray(directives) || directives.length === 0 || directives.length > DIRECTIVES_LIMIT)
    return 'directives is a list such as ["status=451", "at=data"]'
  const written = directives.filter((one): one is string => typeof one === 'string')
  if (written.length < directives.length) return 'directives is a list of texts'
  if (!isWhole(times, 1, TIMES_LIMIT)) return `times is a whole number from 1 to ${TIMES_LIMIT}`
  if (to !== undefined && (typeof to !== 'string' || to.length > TO_LIMIT)) return 'to is a part of an address'
  const fault = faultOf(written)
  if (typeof fault === 'string') return fault
  return { directives: written, ...(to !== undefined && { to }), times }
}

function faultOf(directives: readonly string[]): MailFault | string {
  let fault = NO_FAULT
  for (const directive of directives) {
    const [name, value = ''] = directive.split('=')
    const change = changeBy(name ?? '', value)
    if (typeof change === 'string') return change
    fault = { ...fault, ...change }
  }
  return fault
}

function changeBy(name: string, value: string): Partial<MailFault> | string {
  const number = Number(value)
  switch (name) {
    case 'status':
      return isWhole(number, 400, 599) ? { status: number } : 'status is a whole number from 400 to 599'
    case 'at':
      return value === 'rcpt' || value === 'data' ? { at: value } : 'at is rcpt or data'
    case 'delay':
      return isWhole(number, 0, DELAY_LIMIT_MS)
        ? { delayMs: number }
        : `delay is milliseconds, ${DELAY_LIMIT_MS} at most`
    case 'reset':
      return value === 'before-data' || value === 'after-data' ? { reset: value } : 'reset is before-data or after-data'
    case 'hang':
      return { hangs: true }
    default:
      return `there is no directive ${name} of mail`
  }
}

function isWhole(value: unknown, least: number, most: number): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most
}
