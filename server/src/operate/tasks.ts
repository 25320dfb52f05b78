import { z } from 'zod'
import { attachTask, countOpen, listLost, pollLags } from '../tasks/operate.ts'
import { action, field } from './action.ts'
import { idField, NO_INPUT } from './fields.ts'

const status = action({
  name: 'tasks status',
  summary: 'show open tasks, the polling delay per upstream, and lost tasks',
  effect: 'reads',
  positional: [],
  input: NO_INPUT,
  async run({ pool }) {
    const [open, lags, lost] = await Promise.all([countOpen(pool), pollLags(pool), listLost(pool)])
    return { open, lags, lost }
  },
  lines({ open, lags, lost }) {
    const counts = Object.entries(open).map(([state, count]) => `${count} ${state}`)
    return [
      counts.length === 0 ? 'There are no open tasks.' : `Open: ${counts.join(', ')}.`,
      ...lags.map(({ slot, seconds }) => `Polls of ${slot} are ${seconds.toFixed(1)} seconds late.`),
      ...(lost.length > 0 ? ['Lost tasks (it is unknown whether an upstream runs them):'] : []),
      ...lost.map(
        ({ id, model, created_at: at }) =>
          `${id}  ${model}  ${at.toISOString()}  farebox tasks attach, or farebox ledger resolve`,
      ),
    ]
  },
})

const attach = action({
  name: 'tasks attach',
  summary: 'attach a lost task to the upstream that runs it; the task continues and is not created again',
  effect: 'writes',
  positional: ['id'],
  input: z.object({
    id: idField('id', 'id of the task'),
    upstream: idField('id', 'upstream that runs the task: see farebox upstreams list'),
    name: field('task_id', 'name of the task at the provider', String),
  }),
  async run({ pool, by }, { id, upstream, name }) {
    await attachTask(pool, { id, upstreamId: upstream, name }, by)
    return { id, upstream_id: upstream, name }
  },
  lines: ({ id, name }) => [`Task ${id} is attached, and polled as ${name}.`],
})

export const tasks = [status, attach]
