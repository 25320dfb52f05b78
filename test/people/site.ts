import type pg from 'pg'
import { freePort } from '../../harness/free-port.ts'
import { type Gateway, startGateway } from '../../harness/gateways.ts'
import { type SandboxProcess, startSandbox } from '../../harness/sandbox.ts'
import { makeMasterKey } from '../../harness/seed.ts'
import { PATIENCE_MS, until } from '../../harness/until.ts'
import type { ReceivedMail } from '../../sandbox/src/mail/received-mail.ts'
import { systemClock } from '../../server/src/kernel/clock.ts'
import { createIds } from '../../server/src/kernel/ids.ts'
import { ZERO } from '../../server/src/kernel/money.ts'
import { createSeal, type Seal } from '../../server/src/kernel/seal.ts'
import type { Secret } from '../../server/src/kernel/secret.ts'
import { creditWithin } from '../../server/src/ledger/credit.ts'
import { createPasswords } from '../../server/src/people/passwords.ts'
import { createPeople, type People } from '../../server/src/people/people.ts'
import { createSendMail } from '../../server/src/storage/mail.ts'
import { connect } from '../ledger/world.ts'

/** The website in a process of ours, with somebody who receives its mail. */
export type Site = {
  readonly url: string
  readonly gateway: Gateway
  readonly sandbox: SandboxProcess
  readonly pool: pg.Pool
  /** What no page does yet, done beside it. */
  readonly people: People
  readonly mailTo: (address: string, count?: number) => Promise<ReceivedMail>
  readonly stop: () => Promise<void>
}

/** Whoever comes says by a header from where, so that one test does not use up what another may try. */
const PROXIES = '127.0.0.1/32'

const masterKeys = new Map<string, Secret>()

/** All processes on one database have one: none starts with a key that does not open what is stored. */
function masterKeyOf(databaseUrl: string): Secret {
  const key = masterKeys.get(databaseUrl) ?? makeMasterKey()
  masterKeys.set(databaseUrl, key)
  return key
}

export async function startSite(databaseUrl: string, env: Readonly<Record<string, string>> = {}): Promise<Site> {
  const sandbox = await startSandbox({ smtpPort: 0 })
  const { pools } = connect(databaseUrl)
  const at = `127.0.0.1:${await freePort()}`
  const masterKey = masterKeyOf(databaseUrl)
  const gateway = await startOr(() => Promise.all([sandbox.stop(), pools.close()]), {
    databaseUrl,
    env: given({
      FAREBOX_LISTEN_SITE: at,
      FAREBOX_HTTP_SITE_URL: `http://${at}`,
      FAREBOX_HTTP_TRUSTED_PROXIES: PROXIES,
      FAREBOX_SECRETS_MASTER_KEY: masterKey.reveal(),
      FAREBOX_MAIL_URL: sandbox.smtpUrl ?? '',
      FAREBOX_MAIL_FROM: 'no-reply@farebox.example',
      FAREBOX_LOG_LEVEL: 'warn',
      ...env,
    }),
  })
  return {
    url: `http://${at}`,
    gateway,
    sandbox,
    pool: pools.rest,
    people: peopleOf(pools.rest, createSeal({ current: masterKey }), `http://${at}`),
    mailTo: createMailbox(sandbox),
    async stop() {
      await Promise.allSettled([gateway.stop(), sandbox.stop()])
      await pools.close()
    },
  }
}

/** The newest mail to an address, once there are so many. */
export function createMailbox(sandbox: Pick<SandboxProcess, 'mail'>): Site['mailTo'] {
  return async (address, count = 1) => {
    let mail: readonly ReceivedMail[] = []
    await until(
      async () => {
        mail = await sandbox.mail(address)
        return mail.length >= count
      },
      PATIENCE_MS,
      `mail to ${address}`,
    )
    const [newest] = mail
    if (newest === undefined) throw new Error(`no mail to ${address}`)
    return newest
  }
}

/** Leaves nothing running where it does not start. */
async function startOr(giveUp: () => Promise<unknown>, options: Parameters<typeof startGateway>[0]): Promise<Gateway> {
  try {
    return await startGateway(options)
  } catch (error) {
    await giveUp()
    throw error
  }
}

/** Settings that are to be left out are empty. */
function given(env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''))
}

/** For one more on the same database: the first delivers the mail of both, to its own mailbox. */
export const BESIDE = { FAREBOX_ROLES: 'gateway,agent,site,admin' }

function peopleOf(pool: pg.Pool, seal: Seal, siteUrl: string): People {
  const ids = createIds({ clock: systemClock })
  return createPeople({
    ...{ pool, ids, seal, sendMail: createSendMail({ ids, seal }), passwords: createPasswords() },
    async credit(query, accountId, entryId, amount) {
      await creditWithin(query, { entryId, accountId, amount, kind: 'promotion' })
    },
    testCredit: async () => {},
    settings: { siteUrl, name: 'Farebox', signUp: 'open', domains: [], credit: ZERO },
  })
}

/** The address of a page of ours in a mail. */
export function linkIn({ links, text }: ReceivedMail, path: RegExp): string {
  const link = links.find((one) => path.test(new URL(one).pathname))
  if (link === undefined) throw new Error(`no link to ${path} in: ${text}`)
  return link
}

let addresses = 0

/** An address of the internet, of a network that nobody else in this test comes from. */
export function freshAddress(): string {
  addresses += 1
  return `203.${Math.floor(addresses / 250) % 250}.${addresses % 250}.7`
}
