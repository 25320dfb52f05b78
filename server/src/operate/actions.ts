import type { Action } from './action.ts'
import { outbox } from './outbox.ts'
import { refund } from './refund-charge.ts'
import { tasks } from './tasks.ts'

/** What operators do, by the word that their commands begin with. */
export const ACTIONS = {
  charges: { summary: 'correct what calls were charged', actions: [refund] },
  tasks: { summary: 'manage asynchronous tasks', actions: tasks },
  outbox: { summary: 'deliver messages that could not be delivered', actions: outbox },
} as const satisfies Readonly<Record<string, { readonly summary: string; readonly actions: readonly Action[] }>>

export type ActionGroup = keyof typeof ACTIONS
