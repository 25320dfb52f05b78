import type pg from 'pg'
import { type AuthorizationServerParts, createAuthorizationServer } from '../../server/src/authorization/server.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { createIds } from '../../server/src/kernel/ids.ts'
import type { Seal } from '../../server/src/kernel/seal.ts'
import { loadAssets } from '../../server/src/pages/assets.ts'
import { createPages } from '../../server/src/pages/page.ts'
import { createTellReuse } from '../../server/src/people/reused-grant.ts'
import { createSendMail } from '../../server/src/storage/mail.ts'
import { silentLog } from '../../server/src/telemetry/log.ts'

export const SITE = 'https://site.example'
export const MCP = 'https://site.example/mcp'

type Given = { readonly pool: pg.Pool; readonly seal: Seal } & Partial<AuthorizationServerParts>

/** The authorization server in this process, without limits. */
export function serverHere(given: Given) {
  const ids = createIds({ clock: systemClock })
  const { seal } = given
  return createAuthorizationServer(
    {
      ...{ ids, clock: systemClock, log: silentLog, outbound: null, siteUrl: SITE, baseUrl: undefined, mcpUrl: MCP },
      ...{
        attempts: { take: async () => {}, giveBack: async () => {} },
        introspectionSecret: null,
        clientDocuments: [],
      },
      tellReuse: createTellReuse({ sendMail: createSendMail({ ids, seal }), grantsUrl: `${SITE}/grants` }),
      ...given,
    },
    createPages({ assets: loadAssets(), siteUrl: undefined }),
  )
}
