import { html, pageOf } from '../html.ts'
import type { Correspondent, ReceivedMail } from './received-mail.ts'

/** The pages on which people who develop read the mail that nobody was sent. */

const LIST_LIMIT = 100

const STYLE = `
  main { max-width: 46rem; margin: 0 auto; padding: 1.5rem 2rem }
  p { margin: 0 0 .5rem } a { color: var(--accent) } dt { color: var(--soft) }
  li { padding: .6rem 0 }
  small { font-size: .85rem }
  dl { display: grid; grid-template-columns: auto 1fr; gap: 0 1rem; margin: 0 } dd { margin: 0 }
  pre { margin: 0; padding: 1rem; border: 1px solid var(--line); border-radius: 8px; font: .85rem/1.5 ui-monospace, monospace;
    white-space: pre-wrap }
  iframe { width: 100%; height: 40rem; border: 1px solid var(--line); border-radius: 8px; background: #fff }
`

export function listPage(mail: readonly ReceivedMail[]): string {
  const items = mail
    .slice(0, LIST_LIMIT)
    .map(
      ({ n, subject, envelope, at_ms }) =>
        html`<li><a href="/mail/${String(n)}">${subject === '' ? 'No subject' : subject}</a><small>${envelope.to.join(', ')} · ${timeOf(at_ms)}</small></li>`,
    )
  const content =
    items.length === 0
      ? '<p class="soft">No mail yet. Load this page again when something should have been sent.</p>'
      : `<ul>${items.join('')}</ul>`
  return mailPageOf('Mail', `<h1>Mail</h1>${content}`)
}

export function mailPage({
  n,
  subject,
  from,
  to,
  envelope,
  message_id,
  at_ms,
  text,
  html: markup,
}: ReceivedMail): string {
  const lines = [
    ['From', shown(from)],
    ['To', shown(to)],
    ['Handed over for', envelope.to.join(', ')],
    ['Received', timeOf(at_ms)],
    ['Message-ID', message_id ?? 'none'],
  ]
  const facts = lines.map(([name = '', value = '']) => html`<dt>${name}</dt><dd>${value}</dd>`)
  const framed =
    markup === null
      ? ''
      : html`<h2>As HTML</h2><iframe sandbox src="/mail/${String(n)}/html" title="The HTML of this mail"></iframe>`
  return mailPageOf(
    html`${subject}`,
    `<p><a href="/mail">All mail</a></p><h1>${html`${subject}`}</h1><dl>${facts.join('')}</dl>
<h2>As text</h2><pre>${linked(text)}</pre>${framed}`,
  )
}

function shown(people: readonly Correspondent[]): string {
  return people.map(({ name, address }) => (name === '' ? address : `${name} <${address}>`)).join(', ')
}

/** Text with what looks like an address of a page as a link. */
function linked(text: string): string {
  return text
    .split(/(https?:\/\/[^\s<>"]+)/)
    .map((part, at) => (at % 2 === 0 ? html`${part}` : html`<a href="${part}">${part}</a>`))
    .join('')
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
}

function mailPageOf(title: string, content: string): string {
  return pageOf(title, { style: STYLE, content, footer: 'The sandbox’s mail. None of it was sent to anybody.' })
}
