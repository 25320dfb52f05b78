import { z } from 'zod'
import { dropDead, listDead, outboxFigures, retryAllDead, retryDead } from '../outbox/operate.ts'
import { action, field } from './action.ts'
import { idField, LISTED, NO_INPUT } from './fields.ts'

const list = action({
  name: 'outbox',
  summary: 'list messages that wait for delivery, and dead letters',
  effect: 'reads',
  positional: [],
  input: NO_INPUT,
  async run({ pool }) {
    const [kinds, dead] = await Promise.all([outboxFigures(pool), listDead(pool, LISTED)])
    return { kinds, dead }
  },
  lines: ({ kinds, dead }) => [
    ...(kinds.length === 0 ? ['No messages are waiting, and there are no dead letters.'] : []),
    ...kinds.map(
      ({ kind, waiting, oldest_seconds: seconds, dead: died }) =>
        `${kind}  ${waiting} waiting, the oldest for ${seconds.toFixed(0)} seconds  ${died} dead letters`,
    ),
    ...(dead.length > 0 ? [`Dead letters, newest first, up to ${LISTED}:`] : []),
    ...dead.map(
      ({ id, kind, destination, attempts, failure, created_at: at }) =>
        `${id}  ${kind}  ${destination}  ${at.toISOString()}  ${attempts} attempts  ${failure ?? ''}`,
    ),
  ],
})

const noDeadLetter = (id: string) => new Error(`${id} is not a dead letter: see farebox outbox`)

const retry = action({
  name: 'outbox retry',
  summary: 'retry the delivery of a dead letter',
  effect: 'writes',
  positional: ['id'],
  input: z.object({
    id: idField('id', 'id of the dead letter').optional(),
    kind: field('kind', 'retry all dead letters of this kind (default: the one that is named)', String).optional(),
  }),
  async run({ pool, by }, { id = null, kind = null }) {
    if (id !== null && kind === null) {
      if (!(await retryDead(pool, by, id))) throw noDeadLetter(id)
      return { id, kind, retried: 1 }
    }
    if (id !== null || kind === null) throw new Error('name one dead letter, or --kind for all of a kind')
    return { id, kind, retried: await retryAllDead(pool, by, kind) }
  },
  lines: ({ id, kind, retried }) => [
    id === null
      ? `${retried} dead letters of ${kind} will be delivered again.`
      : `Message ${id} will be delivered again.`,
  ],
})

const drop = action({
  name: 'outbox drop',
  summary: 'delete a dead letter: it is never delivered',
  effect: 'writes',
  positional: ['id'],
  input: z.object({ id: idField('id', 'id of the dead letter') }),
  async run({ pool, by }, { id }) {
    if (!(await dropDead(pool, by, id))) throw noDeadLetter(id)
    return { id }
  },
  lines: ({ id }) => [`Message ${id} is deleted and will not be delivered.`],
})

export const outbox = [list, retry, drop]
