import { z } from 'zod'
import { PAGE, pageFrom, pageOf } from '../../api/pages.ts'
import { Fault } from '../../kernel/fault.ts'
import {
  askExport,
  EXPORT_DAYS,
  EXPORT_STATES,
  type Export,
  findExport,
  listExports,
} from '../../workspaces/exports.ts'
import { downloadOf } from '../download.ts'
import { exportLines } from '../export-lines.ts'
import type { AccountParts } from '../parts.ts'
import { type AccountRoute, inWorkspace } from '../route.ts'

const exported = z.strictObject({
  id: z.string(),
  state: z.enum(EXPORT_STATES).meta({
    description:
      'preparing until all changes that were under way when it was asked for have ended: a moment, as a rule.',
  }),
  mode: z.enum(['live', 'test']).nullable().meta({ description: 'Null for both.' }),
  as_of: z.iso.datetime().meta({ description: 'Up to when it tells of charges, entries, usage and the audit log.' }),
  expires_at: z.iso.datetime(),
})

function toldOf({ id, state, mode, asOf, expiresAt }: Export): z.output<typeof exported> {
  return { id, state, mode, as_of: asOf.toISOString(), expires_at: expiresAt.toISOString() }
}

async function findReady(pool: AccountParts['pool'], sought: Parameters<typeof findExport>[1]): Promise<Export> {
  const found = await findExport(pool, sought)
  if (found.state === 'expired')
    throw new Fault('resource_not_found', { detail: 'The export has expired. Ask for a new one.' })
  if (found.state === 'preparing') throw new Fault('export_not_ready', { retryAfterSeconds: 1 })
  return found
}

const ALL = '/workspaces/{workspace_id}/exports'
const ONE = `${ALL}/{export_id}` as const
/** The most that a download takes. */
const DOWNLOAD_MS = 4 * 3_600_000
const LINES = 'application/x-ndjson'

export const EXPORT_ROUTES: readonly AccountRoute[] = [
  inWorkspace({
    operationId: 'create_export',
    method: 'POST',
    path: ALL,
    need: 'workspace.manage',
    tokens: 'own mode',
    mode: 'its own',
    whileClosing: true,
    summary: 'Ask for all data of the workspace',
    description: `It can be downloaded, as often as you like, for ${EXPORT_DAYS} days. One that an access token asks for is of its mode alone; for test money, without quota requests and the audit log.`,
    tag: 'closure',
    answer: { status: 201, description: 'The export.', body: exported },
    async run({ ids }, { member, place, on }) {
      const asked = { workspaceId: place.id, personId: member.personId, mode: member.granted?.mode ?? null }
      return { body: toldOf(await askExport({ pool: on, ids }, member.by, asked)) }
    },
  }),
  inWorkspace({
    operationId: 'list_exports',
    method: 'GET',
    path: ALL,
    need: 'workspace.manage',
    tokens: 'own mode',
    mode: 'its own',
    summary: 'Exports that were asked for, the newest first',
    tag: 'closure',
    query: z.strictObject(PAGE),
    answer: { description: 'A page of exports.', body: pageOf(exported) },
    async run({ pool }, { member, place, query: { limit, cursor } }) {
      const whose = { workspaceId: place.id, mode: member.granted?.mode ?? null }
      const rows = await listExports(pool, { ...whose, after: cursor, most: limit + 1 })
      return { body: pageFrom(rows, limit, toldOf) }
    },
  }),
  inWorkspace({
    operationId: 'get_export',
    method: 'GET',
    path: ONE,
    need: 'workspace.manage',
    tokens: 'own mode',
    mode: 'its own',
    summary: 'An export, and whether it can be downloaded',
    tag: 'closure',
    answer: { description: 'The export.', body: exported },
    async run({ pool }, { member, place, params: { export_id: id = '' } }) {
      const whose = { workspaceId: place.id, mode: member.granted?.mode ?? null }
      return { body: toldOf(await findExport(pool, { ...whose, id })) }
    },
  }),
  inWorkspace({
    operationId: 'download_export',
    method: 'GET',
    path: `${ONE}/data`,
    need: 'workspace.manage',
    tokens: 'own mode',
    mode: 'its own',
    summary: 'Download an export, as JSON values in lines',
    description:
      'Each line has a type: export, workspace, member, invitation (open ones), quota_request, key, grant (with its mandate), budget, link, task (those that run, and those that ended within a day), entry (payments, credit and corrections), charge (one of each call), usage (by day and operation), audit, and end. The last line, end, has the count of each type and the SHA-256 of all lines before it: a download without it is not whole, and can be repeated. Charges, entries, usage and the audit log are those up to as_of, and the same in every download; the others are as they are when it is downloaded. It never has a secret, a hash of one, or what is sealed. Not in it: records of calls, prompts and results of tasks, sums by end user, former members, decided invitations, and closures, of which the audit log tells. Every page asks again whether you may: it breaks off, without a last line, when your token, grant, session or role ends, when the export expires, and after 4 hours. 2 downloads of a person and 16 of a process run at once; others are refused with 429 and Retry-After.',
    tag: 'closure',
    answer: { description: 'The lines.', body: z.string(), type: LINES },
    codes: ['export_not_ready'],
    async run(parts, { member, place, params: { export_id: id = '' }, stillMay }) {
      const { pool, time, turns } = parts
      const sought = { workspaceId: place.id, mode: member.granted?.mode ?? null, id }
      const found = await findReady(pool, sought)
      // A download takes long: each page waits for its turn as a request does, and is read only for who could begin it now.
      const inTurn = <T>(read: () => Promise<T>) =>
        turns.take(member.personId, { isPage: true }, async () => {
          await stillMay()
          await findReady(pool, sought)
          return read()
        })
      const deadlineMs = Math.min(DOWNLOAD_MS, Math.max(0, found.expiresAt.getTime() - time.nowMs()))
      const onEnd = turns.startDownload(member.personId)
      const lines = exportLines({ ...parts, place, export: found, inTurn })
      return { body: downloadOf(lines, { deadlineMs, onEnd }), type: LINES }
    },
  }),
]
