import type { Command } from 'commander'
import type { TierLimits } from '../catalogue/tiers.ts'
import type { Config } from '../config.ts'
import {
  decideQuotaRequest,
  findQuotaRequest,
  listQuotaRequests,
  QUOTA_STATES,
  type QuotaDecision,
  type QuotaRequest,
} from '../identity/quota-requests.ts'
import { createSendMail } from '../storage/mail.ts'
import {
  idOf,
  ids,
  operator,
  plain,
  print,
  reading,
  running,
  TOKENS_LIMIT,
  unknown,
  wholeNumber,
  withPools,
  writing,
} from './command.ts'
import { limitsLine } from './limits-line.ts'
import { sealFor } from './seal-for.ts'

export function addQuotaCommands(program: Command): void {
  const quota = program.command('quota').description('decide on quota requests: customers who ask for higher limits')
  reading(quota, 'list')
    .description('list quota requests, newest first')
    .option('--state <state>', `only requests in this state: ${QUOTA_STATES.join(', ')}, or all`, 'open')
    .option('--after <id>', 'only requests after this one, for the next page (default: from the newest)')
    .action((options: ListOptions) => running((config) => list(config, options)))
  reading(quota, 'show <request>')
    .description('show a quota request')
    .action((id: string) => running((config) => show(config, id)))
  writing(quota, 'approve <request>')
    .description('approve a quota request: raises the limits of the account, lowers none, and tells who asked by mail')
    .requiredOption('--note <text>', 'what to tell them')
    .option('--rpm <requests>', 'requests per minute (default: as requested)')
    .option('--tpm <tokens>', 'tokens per minute (default: as requested)')
    .option('--concurrency <calls>', 'concurrent calls (default: those of the tier that has such requests and tokens)')
    .action((id: string, options: ApproveOptions) => running((config) => approve(config, id, options)))
  writing(quota, 'refuse <request>')
    .description('refuse a quota request, and tell who asked by mail')
    .requiredOption('--note <text>', 'what to tell them')
    .action((id: string, { note }: { note: string }) =>
      running((config) => decide(config, id, { isApproved: false, note: noteOf(note) })),
    )
}

type ListOptions = { readonly state: string; readonly after?: string }
type ApproveOptions = {
  readonly note: string
  readonly rpm?: string
  readonly tpm?: string
  readonly concurrency?: string
}

const LISTED = 100
const NOTE_LIMIT = 2_000

async function list(config: Config, { state, after }: ListOptions): Promise<void> {
  const wanted = QUOTA_STATES.find((one) => one === state)
  if (wanted === undefined && state !== 'all') throw new Error(`--state must be ${QUOTA_STATES.join(', ')} or all`)
  await withPools(config, async ({ rest: pool }) => {
    const from = after === undefined ? undefined : idOf(after)
    const rows = await listQuotaRequests(pool, { state: wanted, after: from, most: LISTED })
    for (const row of rows) print(plain(lineOf(row)))
    if (rows.length === 0) print('There are no such quota requests.')
    if (rows.length === LISTED) print(`There may be more. For the next page, add --after ${rows.at(-1)?.id}`)
  })
}

function lineOf({ id, workspaceId, state, requestsPerMinute, tokensPerMinute, targets }: QuotaRequest): string {
  return `${id}  ${state}  account ${workspaceId}  ${requestsPerMinute} requests, ${tokensPerMinute} tokens per minute  for ${targets.join(', ')}`
}

async function show(config: Config, id: string): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const found = await findQuotaRequest(pool, { id: idOf(id) }).catch(unknown(`quota request ${id}`))
    const { granted } = found
    const lines = [
      `Quota request ${found.id}, ${found.state}, made ${found.createdAt.toISOString()}`,
      `Account: ${found.workspaceId}`,
      `Expected peak: ${found.requestsPerMinute} requests per minute, ${found.tokensPerMinute} tokens per minute`,
      `For: ${found.targets.join(', ')}`,
      `Use case: ${found.useCase}`,
      ...(granted === null ? [] : [`Granted: ${limitsLine(granted)}`]),
      ...(found.note === null ? [] : [`Note: ${found.note}`]),
    ]
    for (const line of lines) print(plain(line))
  })
}

function approve(config: Config, id: string, { note, rpm, tpm, concurrency }: ApproveOptions): Promise<void> {
  const limits: Partial<TierLimits> = {
    ...(rpm !== undefined && { requestsPerMinute: wholeNumber('--rpm', rpm) }),
    ...(tpm !== undefined && { tokensPerMinute: wholeNumber('--tpm', tpm, TOKENS_LIMIT) }),
    ...(concurrency !== undefined && { concurrency: wholeNumber('--concurrency', concurrency) }),
  }
  return decide(config, id, { isApproved: true, note: noteOf(note), limits })
}

async function decide(config: Config, text: string, decision: QuotaDecision): Promise<void> {
  await withPools(config, async ({ rest: pool }) => {
    const id = idOf(text)
    const [seal, siteUrl] = [await sealFor(pool, config), config.http.site_url]
    const sendMail = seal === null || siteUrl === undefined ? null : createSendMail({ ids, seal })
    const parts = { pool, sendMail, siteUrl: siteUrl ?? '' }
    const decided = await decideQuotaRequest(parts, operator(), id, decision).catch(unknown(`quota request ${text}`))
    const { granted, limitsBefore } = decided
    if (granted !== null) print(`Before: each key had ${limitsLine(limitsBefore)}.`)
    print(granted === null ? 'Refused: the limits stay as they are.' : `Approved. Each key has ${limitsLine(granted)}.`)
    if (sendMail === null) print('Nobody was told: letters need secrets.master_key and http.site_url.')
  })
}

function noteOf(text: string): string {
  const note = text.trim()
  if (note === '' || note.length > NOTE_LIMIT) throw new Error(`--note must have from 1 to ${NOTE_LIMIT} characters`)
  return note
}
