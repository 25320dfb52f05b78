import { z } from 'zod'
import { type AccountRoute, inWorkspace } from '../route.ts'

/** Their place: nobody can set one up yet, and whoever asks is told so. */
export const WEBHOOK_ROUTES: readonly AccountRoute[] = [
  inWorkspace({
    operationId: 'list_webhooks',
    method: 'GET',
    path: '/workspaces/{workspace_id}/webhooks',
    need: 'workspace.read',
    tokens: 'both',
    definition: 'pending',
    summary: 'Webhooks of the workspace: not available yet',
    description: 'Nothing can be set up yet, so the list is empty and available is false.',
    tag: 'webhooks',
    answer: {
      description: 'That there are none.',
      body: z.strictObject({
        available: z.boolean().meta({ description: 'Whether webhooks can be set up here.' }),
        data: z.array(z.looseObject({})),
        next_cursor: z.string().nullable(),
      }),
    },
    run: async () => ({ body: { available: false, data: [], next_cursor: null } }),
  }),
]
