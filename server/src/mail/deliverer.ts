import { createTransport } from 'nodemailer'
import type { Clock } from '../kernel/clock.ts'
import type { Secret } from '../kernel/secret.ts'
import { type Deliverer, type Delivery, DeliveryFailure } from '../outbox/deliverer.ts'
import { type Mail, mail } from '../storage/mail.ts'
import type { Brand } from './letter.ts'
import { messageOf, type Sender } from './message.ts'
import { refusalIn } from './refusal.ts'
import { smtpOptions } from './smtp.ts'

export type MailDeliverer = Deliverer & {
  /** Ends its connections; what is under way is tried again by others. */
  readonly close: () => void
}

type Parts = {
  readonly url: Secret
  readonly from: Sender
  readonly brand?: Brand
  readonly clock: Pick<Clock, 'nowMs'>
}

/** Letters wait for each other's connections, all of which go to one server. */
const TIMEOUT_MS = 60_000

/** Delivers letters by SMTP. At least once: who died after the server took one sends it again, with the same Message-ID. */
export function createMailDeliverer({ url, from, brand, clock }: Parts): MailDeliverer {
  const options = smtpOptions(url)
  const open = () => createTransport(options)
  let pool: ReturnType<typeof open> | undefined

  async function deliver({ id, payload, createdAt, signal }: Delivery): Promise<void> {
    const letter = mail.parse(payload)
    if (isOver(letter, clock.nowMs())) throw new DeliveryFailure('its link has expired', { isFinal: true })
    const message = messageOf(letter, { id, createdAt, from, ...(brand && { brand }) })
    if (message === null) throw new DeliveryFailure('its address is not one of mail', { isFinal: true })
    pool ??= open()
    const own = pool
    // A server that sends a byte now and then is never silent: only its end frees the connection.
    const giveUp = () => {
      own.close({ force: true })
      if (pool === own) pool = undefined
    }
    signal.addEventListener('abort', giveUp, { once: true })
    try {
      await own.sendMail(message)
    } catch (error) {
      throw refusalIn(error)
    } finally {
      signal.removeEventListener('abort', giveUp)
    }
  }

  return {
    deliver,
    timeoutMs: TIMEOUT_MS,
    close() {
      pool?.close({ force: true })
      pool = undefined
    },
  }
}

/** Nobody is sent a link that does not work any more. */
function isOver(letter: Mail, nowMs: number): boolean {
  return 'until' in letter && Date.parse(letter.until) <= nowMs
}
