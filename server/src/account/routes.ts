import type { AccountRoute } from './route.ts'
import { AUDIT_ROUTES } from './routes/audit.ts'
import { BUDGET_ROUTES } from './routes/budgets.ts'
import { CLOSURE_ROUTES } from './routes/closure.ts'
import { EXPORT_ROUTES } from './routes/exports.ts'
import { KEY_STATE_ROUTES } from './routes/key-states.ts'
import { KEY_ROUTES } from './routes/keys.ts'
import { LINK_ROUTES } from './routes/links.ts'
import { ME_ROUTES } from './routes/me.ts'
import { MEMBER_ROUTES } from './routes/members.ts'
import { MONEY_ROUTES } from './routes/money.ts'
import { QUOTA_ROUTES } from './routes/quota-requests.ts'
import { RECORD_ROUTES } from './routes/records.ts'
import { TICKET_ROUTES } from './routes/tickets.ts'
import { WEBHOOK_ROUTES } from './routes/webhooks.ts'
import { WORKSPACE_ROUTES } from './routes/workspaces.ts'

/** Every route of the account API. The document, the routes that run and the table of roles are made of this list. */
export const ACCOUNT_ROUTES: readonly AccountRoute[] = [
  ...ME_ROUTES,
  ...WORKSPACE_ROUTES,
  ...KEY_ROUTES,
  ...KEY_STATE_ROUTES,
  ...TICKET_ROUTES,
  ...MONEY_ROUTES,
  ...RECORD_ROUTES,
  ...BUDGET_ROUTES,
  ...MEMBER_ROUTES,
  ...LINK_ROUTES,
  ...AUDIT_ROUTES,
  ...QUOTA_ROUTES,
  ...EXPORT_ROUTES,
  ...CLOSURE_ROUTES,
  ...WEBHOOK_ROUTES,
]
