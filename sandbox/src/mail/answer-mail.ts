import type { IncomingMessage, ServerResponse } from 'node:http'
import { jsonIn, readBody } from '../read-body.ts'
import { sendJson } from '../send-json.ts'
import { listPage, mailPage } from './mail-pages.ts'
import type { Mailbox } from './mailbox.ts'

export const MAIL_CONTROL = '/control/mail'

type Visit = {
  readonly mailbox: Mailbox
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly path: string
  readonly query: string
}

export function isMailPath(path: string): boolean {
  return path === '/mail' || path === '/mail.json' || path.startsWith('/mail/') || path === MAIL_CONTROL
}

/** What was received, for people and for programs, and what shall go wrong. */
export function answerMail(visit: Visit): void {
  const { mailbox, request, response, path, query } = visit
  if (path === MAIL_CONTROL) answerControl(visit)
  else if (path === '/mail.json') {
    if (request.method === 'DELETE') mailbox.empty()
    sendJson(response, 200, { mail: mailbox.list(new URLSearchParams(query).get('to') ?? undefined) })
  } else if (request.method !== 'GET')
    sendJson(response, 405, { error: 'GET reads mail; DELETE /mail.json empties it.' })
  else if (path === '/mail') sendPage(response, 200, listPage(mailbox.list()))
  else answerOne(visit)
}

const ONE = /^\/mail\/(\d{1,15})(\/html)?$/

function answerOne({ mailbox, response, path }: Visit): void {
  const [, n, isHtml] = ONE.exec(path) ?? []
  const mail = n === undefined ? undefined : mailbox.find(Number(n))
  if (mail === undefined) sendJson(response, 404, { error: `There is no mail at ${path}, or no longer.` })
  else if (isHtml === undefined) sendPage(response, 200, mailPage(mail))
  else if (mail.html === null) sendJson(response, 404, { error: 'This mail has no HTML.' })
  else sendPage(response, 200, mail.html, MAIL_POLICY)
}

/** Our own pages frame the HTML of mail, which itself may do nothing but look like something. */
const PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-src 'self'; base-uri 'none'"
const MAIL_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; sandbox"

function sendPage(response: ServerResponse, status: number, body: string, policy = PAGE_POLICY): void {
  response.writeHead(status, {
    'content-type': 'text/html; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'content-security-policy': policy,
    'referrer-policy': 'no-referrer',
  })
  response.end(body)
}

function answerControl({ mailbox: { faults }, request, response }: Visit): void {
  if (request.method === 'DELETE') faults.clear()
  if (request.method !== 'POST') sendJson(response, 200, { faults: faults.waiting() })
  else
    readBody(request, (body) => {
      const wrong = typeof body === 'string' ? `the body is ${body}` : faults.add(jsonIn(body))
      if (wrong === undefined) sendJson(response, 200, { faults: faults.waiting() })
      else sendJson(response, 400, { error: wrong })
    })
}
