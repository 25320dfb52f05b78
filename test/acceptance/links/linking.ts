import assert from 'node:assert/strict'
import { ask, type Told } from '../installation.ts'

/** Linking as a user does it, without a browser: the form of the platform's page is sent as a browser would. */
const BASE = '/apis/v1/social_a'
export const AUTH = `${BASE}/auth_social_a`
export const CALLBACK = `${BASE}/oauth_callback`
export const FOLLOW = `${BASE}/follow_social_a`
export const LINKS = `${BASE}/links`

export function startLink(url: string, secret: string, body?: unknown): Promise<Told> {
  return ask(url, secret, AUTH, { method: 'POST', ...(body !== undefined && { body }) })
}

/** The user decides on the platform's page; where the platform sends it then. */
export async function decide(authUrl: string, { user = 'alice', decision = 'allow' } = {}): Promise<string> {
  const form = new URL(authUrl).searchParams
  form.set('sandbox_user', user)
  form.set('decision', decision)
  const { origin, pathname } = new URL(authUrl)
  const answer = await fetch(origin + pathname, { method: 'POST', body: form, redirect: 'manual' })
  assert.equal(answer.status, 302, await answer.text())
  return answer.headers.get('location') ?? ''
}

export type PageTold = { readonly status: number; readonly headers: Headers; readonly text: string }

/** As a browser opens an address, or as a program that has no person to ask. */
export async function open(address: string, accept = 'text/html,application/xhtml+xml'): Promise<PageTold> {
  const answer = await fetch(address, { redirect: 'manual', headers: { accept } })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

/** The whole way, as it goes when everything is well. */
export async function linkAccount(url: string, secret: string, user = 'alice', body?: unknown): Promise<PageTold> {
  const started = await startLink(url, secret, body)
  assert.equal(started.status, 200, started.text)
  const asked = await open(await decide(String(started.json.auth_url), { user }))
  assert.equal(asked.status, 200, asked.text)
  const page = await confirm(url, asked)
  assert.equal(page.status, 200, page.text)
  return page
}

/** Answers the page that says for whom the account is about to be linked. */
export async function confirm(url: string, { text }: PageTold, decision = 'link'): Promise<PageTold> {
  const offer = /name="offer" value="([^"]+)"/.exec(text)?.[1] ?? ''
  const body = new URLSearchParams({ offer, decision })
  const answer = await fetch(`${url}${CALLBACK}/decide`, { method: 'POST', body, redirect: 'manual' })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

export function follow(url: string, secret: string, target = '123'): Promise<Told> {
  return ask(url, secret, FOLLOW, { body: { target_user_id: target } })
}

/** The token by which the page lets its user take everything back. */
export function undoTokenIn({ text }: PageTold): string {
  return /name="token" value="([^"]+)"/.exec(text)?.[1] ?? ''
}
