import type { Changes } from '../../harness/changes.ts'
import { OutboundFailure } from '../../server/src/outbound/failure.ts'
import { type Delivery, DeliveryFailure } from '../../server/src/outbox/deliverer.ts'
import { NOTE } from './notes.ts'

/**
 * The real server with one kind of message of the tests: it is posted to the URL that is its destination, with its id.
 * Everything but that is the product's own.
 */
const TIMEOUT_MS = 5_000
const RETRIES = { attempts: 50, leastMs: 100, mostMs: 1_000 }

export const changes: Changes = () => ({
  deliverers: ({ outbound }) =>
    new Map([
      [
        NOTE.name,
        {
          timeoutMs: TIMEOUT_MS,
          retries: RETRIES,
          async deliver({ id, destination: url, payload, signal }: Delivery) {
            const headers = { 'content-type': 'application/json', 'message-id': id, worker: String(process.pid) }
            const body = Buffer.from(JSON.stringify(payload))
            const { status } = await outbound
              .send({ url, method: 'POST', headers, body, signal })
              .catch((error: unknown) => {
                if (error instanceof OutboundFailure) throw new DeliveryFailure(error.message, { cause: error })
                throw error
              })
            if (status >= 300) throw new DeliveryFailure(`answered with ${status}`, { isFinal: status === 410 })
          },
        },
      ],
    ]),
})
