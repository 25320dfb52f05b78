import { CONSENT_PATH } from './configuration.ts'
import { destinationOf } from './redirects.ts'
import type { Refused } from './refused-page.ts'

/** What the library is about to answer. */
export type Answering = {
  readonly oidc?: { readonly route?: string; readonly client?: { readonly clientId: string } | undefined }
  /** A header of the request. */
  get(name: string): string
  readonly response: { get(name: string): unknown; remove(name: string): void }
  status: number
  body: unknown
  set(headers: Record<string, string>): void
}

type Parts = {
  /** Whether whoever is signed in, by the cookies of the request, has ever allowed a client. */
  readonly isAllowed: (clientId: string, cookie: string) => Promise<boolean>
  readonly render: (ctx: Answering, refused: Refused) => void
}

/**
 * Anybody may register an address. Until the person who is signed in has allowed its client, a request that is not right is a page of ours and no way
 * there, whoever else has allowed it: else a link to us would lead wherever a stranger likes, before anybody has seen anything.
 */
export function createKeepHere({ isAllowed, render }: Parts) {
  return async (ctx: Answering): Promise<void> => {
    const location = String(ctx.response.get('location') ?? '')
    // Of a request that has just come, whatever leads elsewhere than to the consent page is an error for the client.
    if (ctx.oidc?.route !== 'authorization' || location === '' || location.startsWith(`${CONSENT_PATH}/`)) return
    const clientId = ctx.oidc.client?.clientId
    if (clientId !== undefined && (await isAllowed(clientId, ctx.get('cookie')))) return
    const { search, hash } = new URL(location)
    const told = [new URLSearchParams(search), new URLSearchParams(hash.slice(1))]
    const first = (name: string) => told.map((params) => params.get(name)).find((value) => value !== null)
    ctx.response.remove('location')
    ctx.status = 400
    render(ctx, {
      error: first('error') ?? 'invalid_request',
      error_description: first('error_description') ?? undefined,
      destination: destinationOf(location).shown,
    })
  }
}
