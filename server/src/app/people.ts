import { missingForPeople } from '../config.ts'
import { createAttempts } from '../identity/people/attempts.ts'
import { createPasswords } from '../identity/people/passwords.ts'
import { createPeople, type People } from '../identity/people/people.ts'
import { createTellReuse } from '../identity/people/reused-grant.ts'
import { creditWithin } from '../ledger/credit.ts'
import { giveTestCredit } from '../ledger/test-credit.ts'
import { createIssuer } from '../oauth/issuer.ts'
import type { AuthorizationServerParts } from '../oauth/provider/server.ts'
import { GRANTS_PATH } from '../oauth/routes/grants.ts'
import { ISSUER_CALLBACK } from '../oauth/routes/issuer.ts'
import { createOutbound, type Outbound } from '../outbound/outbound.ts'
import { createKeptPrices } from '../site/kept-prices.ts'
import { createWatch } from '../site/status/watch.ts'
import { createSendMail } from '../storage/mail.ts'
import { type Ground, issuerOf, missingIn, siteNameOf, siteUrlOf } from './ground.ts'

/** What the website has beside its routes. */
export function createSiteParts(ground: Ground, outbound: Outbound) {
  return {
    people: createPeopleOf(ground),
    issuer: createIssuerOf(ground),
    authorization: authorizationOf(ground, outbound),
    prices: createKeptPrices({ ...ground, pool: ground.pools.rest }),
    watch: createWatch({ ...ground, isLedgerThere: () => missingIn(ground).length === 0 }),
  }
}

export type SiteParts = ReturnType<typeof createSiteParts>

/** Who people are. Passwords are hashed by few at a time in the whole process. */
function createPeopleOf({ config, pools, ids, seal, time }: Ground): People {
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
function createIssuerOf({ config: { people, http, outbound: rules }, clock, log, metrics }: Ground) {
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
function mayAskStrangers({ access, allowed_origins: allowed }: Ground['config']['outbound']): boolean {
  return access === 'public' || (access === 'listed' && allowed.length > 0)
}

/** What the authorization server is made of; null where there is none. */
function authorizationOf(
  { config, pools, ids, clock, log, seal }: Ground,
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
