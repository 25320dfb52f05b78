import type { Action } from './action.ts'
import { refund } from './refund-charge.ts'

/** All that operators do by a list; what the command line has beside it is on its way here. */
export const ACTIONS: readonly Action[] = [refund]
