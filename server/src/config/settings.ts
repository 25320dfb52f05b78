import { z } from 'zod'
import { section, setting } from './described.ts'
import { choice, integer, list, masterKey, postgresUrl } from './kinds.ts'
import { http, listen, memory } from './listener-settings.ts'
import { contract, loss, names, rerank, sales, tasks } from './offer-settings.ts'
import { links, mail, oauth, outbound, people, site } from './people-settings.ts'

const ROLES = ['gateway', 'agent', 'site', 'admin', 'worker'] as const

const database = section(
  z.strictObject({
    url: setting(
      postgresUrl,
      'PostgreSQL, 15 or newer, that keeps everything.',
      'Set it for every process and command. Run `farebox config check` after a change.',
    ),
    money_connections: setting(
      integer(1, 64).prefault(4),
      'Connection pool for the statements that begin, extend and end calls. They go in batches, so a few connections carry many calls.',
      "Leave it. PostgreSQL's `max_connections` has to be at least (`money_connections` + `rest_connections` + 6) × the number of processes, and some more for commands. By default a process has 18 at the most.",
    ),
    rest_connections: setting(
      integer(1, 64).prefault(8),
      'Connection pool for everything else: look-ups, lists, reports, the worker.',
      'Raise it where lists and reports are slow while PostgreSQL itself has little to do.',
    ),
  }),
  'PostgreSQL. A process has up to six connections more than its two pools: one for its lease, one that listens for changes, and up to four for the pages of the console.',
)

const secrets = section(
  z
    .strictObject({
      master_key: setting(
        masterKey.optional(),
        'Key that encrypts (seals) stored secrets: credentials of upstreams, tokens, prompts of tasks, mail, second factors. It also signs quotes. Without it, these do not work: upstreams with a credential, linked accounts, videos, sign-up and mail, OAuth clients, and quotes that bind.',
        'Give every process and command the same key, and keep a copy: if the key is lost, what it sealed is lost ([operating.md](operating.md#the-master-key)).',
      ),
      previous_master_key: setting(
        masterKey.optional(),
        'Old key, while you change the master key: it opens what it sealed, and seals nothing new. It needs `secrets.master_key`.',
        'Follow the steps in [operating.md](operating.md#changing-the-master-key). Remove the old key when `farebox secrets rotate` says so.',
      ),
    })
    .prefault({}),
  'Encryption at rest.',
)

const log = section(
  z
    .strictObject({
      level: setting(
        choice(['info', 'warn', 'error', 'silent'], 'must be info, warn, error or silent').prefault('info'),
        'Log level: the least that is written to standard output, as JSON, a line for each.',
        'Leave `info`. Set `warn` where another system keeps starts and stops; then there are no lines of calls.',
      ),
      calls: setting(
        choice(['all', 'failed', 'none'], 'must be all, failed or none').prefault('failed'),
        'Which calls have a line in the log when they have ended: id, account, key, operation, model, upstream by name, status, milliseconds and cost, never what was asked or answered.',
        'Leave `failed`: a provider in trouble shows at once. Set `all` to have each call in a log system, refused ones too.',
      ),
    })
    .prefault({}),
  'The log.',
)

/** Every setting that there is, with what people are told of it. */
export const settings = z.strictObject({
  roles: setting(
    list(choice(ROLES, `must be among ${ROLES.join(', ')}`), `one or more of ${ROLES.join(', ')}`).prefault([...ROLES]),
    'Roles of a process. Each is a listener, for the API (`gateway`), agents (`agent`), the website (`site`) or metrics (`admin`), or the work in the background (`worker`).',
    'Run all in one process to begin with. Every installation needs one process with the role `worker`.',
  ),
  database,
  secrets,
  listen,
  http,
  memory,
  names,
  rerank,
  loss,
  outbound,
  people,
  oauth,
  mail,
  site,
  contract,
  sales,
  tasks,
  links,
  log,
})
