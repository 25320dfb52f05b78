import { createRequestWatch } from '../account/request-watch.ts'
import type { AuthorizationServerParts } from '../authorization/server.ts'
import { catalogue as ours } from '../catalogue/catalogue.ts'
import { missingForPeople } from '../config.ts'
import { creditWithin } from '../ledger/credit.ts'
import { giveTestCredit } from '../ledger/test-credit.ts'
import { createOutbound, type Outbound } from '../outbound/outbound.ts'
import { createAttempts } from '../people/attempts.ts'
import { createPasswords } from '../people/passwords.ts'
import { createPeople, type People } from '../people/people.ts'
import { createTellReuse } from '../people/reused-grant.ts'
import { createIssuer } from '../people-pages/issuer.ts'
import { GRANTS_PATH } from '../people-pages/routes/grants.ts'
import { ISSUER_CALLBACK } from '../people-pages/routes/issuer.ts'
import { createKeptPrices } from '../site/kept-prices.ts'
import { createKeptProcesses } from '../site/status/kept-processes.ts'
import { createSendMail } from '../storage/mail.ts'
import { type Infrastructure, issuerOf, siteNameOf, siteUrlOf } from './infrastructure.ts'
import type { Start } from './options.ts'

/** What the website has beside its routes. */
export function createSiteParts(infrastructure: Infrastructure, outbound: Outbound, { catalogue = ours }: Start) {
  return {
    people: createPeopleOf(infrastructure),
    issuer: createIssuerOf(infrastructure),
    authorization: authorizationOf(infrastructure, outbound),
    requestWatch: createRequestWatch({ ...infrastructure, pool: infrastructure.pools.pages }),
    prices: createKeptPrices({ ...infrastructure, catalogue, pool: infrastructure.pools.rest }),
    processes: createKeptProcesses({ ...infrastructure, pool: infrastructure.pools.rest }),
  }
}

export type SiteParts = ReturnType<typeof createSiteParts>

/** Who people are. Passwords are hashed by few at a time in the whole process. */
function createPeopleOf({ config, pools, ids, seal, time }: Infrastructure): People {
  const { people } = config
  return createPeople({
    pool: pools.rest,
    ids,
    seal,
    sendMail: createSendMail({ ids, seal }),
    passwords: createPasswords(),
    async credit(query, accountId, entryId, amount) {
      await creditWithin(query, { entryId, accountId, amount, kind: 'promotion' })
    },
    async testCredit(query, by, accountId) {
      await giveTestCredit(query, by, { accountId, amount: people.test_credit, nowMs: time.nowMs() })
    },
    settings: {
      siteUrl: siteUrlOf(config),
      name: siteNameOf(config),
      signUp: missingForPeople(config).length === 0 ? people.sign_up : 'closed',
      domains: people.domains,
      credit: people.credit,
    },
  })
}

/**
 * Who people can sign in by, where the operator says so. Its own origin is listed by being configured; whatever else it names is asked as
 * a stranger's address is.
 */
function createIssuerOf({ config: { people, http, outbound: rules }, clock, log, metrics }: Infrastructure) {
  const { issuer: given } = people
  if (given === undefined || http.site_url === undefined) return null
  const { access, allowed_origins: allowed, refused_networks: refusedNetworks } = rules
  const own = new URL(given.url).origin
  const asked =
    access === 'none'
      ? ({ access: 'listed', allowedOrigins: [own] } as const)
      : { access, allowedOrigins: [own, ...allowed] }
  const outbound = createOutbound({ ...asked, refusedNetworks, clock, log, metrics })
  const { url, client_id: clientId, client_secret: clientSecret, name } = given
  const redirectUri = http.site_url + ISSUER_CALLBACK
  const issuer = createIssuer({ url, clientId, clientSecret, redirectUri, outbound, clock })
  return { issuer, name, log, close: outbound.close }
}

/** Whether a client's document can be asked for at all: metadata offers no way that leads nowhere. */
function mayAskStrangers({ access, allowed_origins: allowed }: Infrastructure['config']['outbound']): boolean {
  return access === 'public' || (access === 'listed' && allowed.length > 0)
}

/** What the authorization server is made of; null where there is none. */
function authorizationOf(
  { config, pools, ids, clock, log, seal }: Infrastructure,
  outbound: Outbound,
): AuthorizationServerParts | null {
  const { http, oauth } = config
  const siteUrl = issuerOf(config)
  if (seal === null || siteUrl === undefined) return null
  return {
    ...{ pool: pools.rest, ids, clock, log, seal, siteUrl, baseUrl: http.public_url, mcpUrl: http.mcp_url },
    outbound: mayAskStrangers(config.outbound) ? outbound : null,
    attempts: createAttempts({ pool: pools.rest }),
    introspectionSecret: oauth.introspection_secret ?? null,
    clientDocuments: oauth.client_documents ?? [],
    tellReuse: createTellReuse({ sendMail: createSendMail({ ids, seal }), grantsUrl: siteUrl + GRANTS_PATH }),
  }
}
