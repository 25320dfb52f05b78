import { z } from 'zod'
import { type Asker, answerTo } from '../api/answer.ts'
import type { ApiRequest, ApiResponse } from '../api/request.ts'
import { parsed } from '../api/route.ts'
import { Fault } from '../kernel/fault.ts'
import type { Mode } from '../kernel/mode.ts'
import { findPlace, type Place, requirePermission } from '../people/membership.ts'
import type { Transactions } from '../storage/transaction.ts'
import type { Member } from './authenticate.ts'
import type { AccountParts } from './parts.ts'
import { type AccountRoute, type MemberAccess, modeForm } from './route.ts'

/** Answers a request to a route of the account API, for members and their clients. */
export function answerMember(parts: AccountParts, route: AccountRoute, request: ApiRequest): Promise<ApiResponse> {
  const { pool, turns, authenticate } = parts
  return answerTo({
    ...{ route, request, pool, turns },
    async identify(isWrite) {
      const member = route.need === 'nothing' ? null : await authenticate(request, isWrite)
      return askerOf(parts, route, request, member)
    },
  })
}

/** What somebody may do: by their role, by their access token, and by what becomes of the workspace. */
function askerOf(parts: AccountParts, route: AccountRoute, request: ApiRequest, member: Member | null): Asker {
  const modeOf = () => modeIn(route, request.query, member)
  return {
    personId: member?.personId ?? null,
    // Not a client: it may have been let into less than the person whose change it was.
    isToldAgain: member?.granted === null,
    modeOf,
    async admit(on, isLocked = false) {
      const place = await placeOf(on, route, request, member, isLocked)
      const { prepare } = route
      return {
        requireOpen() {
          if (place === null || route.whileClosing === true) return
          if (place.closesAt !== null) throw new Fault('workspace_closing')
          if (place.suspendedAt !== null) throw new Fault('workspace_suspended')
        },
        run: async (asked) => route.run(parts, { ...asked, member, place, mode: modeOf() }),
        prepare: prepare && (async (asked) => prepare(parts, { ...asked, member, place, mode: modeOf() })),
      }
    },
  }
}

async function placeOf(
  on: Transactions,
  route: MemberAccess,
  { params }: ApiRequest,
  member: Member | null,
  isLocked: boolean,
): Promise<Place | null> {
  const { need } = route
  if (member === null || need === 'nothing') return null
  if (need === 'sign_in') {
    requireToken(route, member)
    return null
  }
  const { personId, granted } = member
  const workspaceId = params.workspace_id ?? ''
  // Another workspace than the one that a client was let into is not there for it, and as long looked for.
  const sought = granted === null || granted.workspaceId === workspaceId ? workspaceId : NOBODYS
  const place = await findPlace(on, { personId, workspaceId: sought, isLocked })
  requirePermission(place, need)
  requireToken(route, member)
  return place
}

/** An id that nothing has. */
const NOBODYS = '00000000-0000-7000-8000-000000000000'

/** A client makes nothing that outlives its grant but keys, and with test money changes and sees nothing that is about live money. */
function requireToken({ tokens, mode }: MemberAccess, { granted }: Member): void {
  if (granted === null || tokens === 'both') return
  if (tokens === 'never')
    throw new Fault('forbidden', { detail: 'An access token can not do this. Sign in with a browser to do it.' })
  if (mode === undefined && granted.mode !== 'live')
    throw new Fault('forbidden', {
      detail:
        'The access token is for test money, and this is about live money too. Use a token for live money, or sign in.',
    })
}

/** That which the query names, where it may; else that of the access token. */
function modeIn({ mode }: MemberAccess, query: unknown, member: Member | null): Mode {
  const own = member?.granted?.mode
  const named = mode === 'named' ? parsed(z.object({ mode: modeForm }), query).mode : undefined
  if (named !== undefined && own !== undefined && named !== own)
    throw new Fault('forbidden', { detail: `The access token is for ${own} mode. Use one for ${named} mode.` })
  return named ?? own ?? 'live'
}
