import { MailFaults } from './mail-faults.ts'
import type { ReceivedMail } from './received-mail.ts'

const KEPT = 1000

/** The newest mail for anybody, and what is to go wrong with the next. */
export class Mailbox {
  readonly faults = new MailFaults()
  #mail: ReceivedMail[] = []
  #next = 0

  add(mail: Omit<ReceivedMail, 'n'>): void {
    this.#mail.push({ n: this.#next, ...mail })
    this.#next += 1
    if (this.#mail.length > KEPT) this.#mail.shift()
  }

  /** Newest first; where an address is given, that which was handed over for it. */
  list(to?: string): readonly ReceivedMail[] {
    const newest = this.#mail.toReversed()
    const wanted = to?.toLowerCase()
    return wanted === undefined
      ? newest
      : newest.filter(({ envelope }) => envelope.to.some((one) => one.toLowerCase() === wanted))
  }

  find(n: number): ReceivedMail | undefined {
    return this.#mail.find((mail) => mail.n === n)
  }

  empty(): void {
    this.#mail = []
  }
}
