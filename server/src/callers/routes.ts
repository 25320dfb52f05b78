import { BALANCE_ROUTES } from './balance.ts'
import { LINK_ROUTES } from './links.ts'
import { MODEL_ROUTES } from './models.ts'
import { REQUEST_ROUTES } from './requests.ts'
import type { CallerRoute } from './route.ts'
import { TASK_ROUTES } from './tasks.ts'
import { USAGE_ROUTES } from './usage.ts'

/** Every route of base_url that is free. The HTTP routes, their places in the contract and the operations of agents are made of this list. */
export const CALLER_ROUTES: readonly CallerRoute[] = [
  ...BALANCE_ROUTES,
  ...USAGE_ROUTES,
  ...REQUEST_ROUTES,
  ...MODEL_ROUTES,
  ...TASK_ROUTES,
  ...LINK_ROUTES,
]
