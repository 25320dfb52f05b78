import { type Html, html } from '../../kernel/html.ts'
import type { Id } from '../../kernel/ids.ts'
import type { Mode } from '../../kernel/mode.ts'
import { callout } from '../../pages/form.ts'
import { FORM_TOKEN } from '../../pages/form-token.ts'
import { brand, icon } from '../../pages/icons.ts'
import type { Page, Pages } from '../../pages/page.ts'
import type { Asked } from '../../pages/page-route.ts'
import { timeOf } from '../../people-pages/views/words.ts'

export type Where = { readonly workspaceId: Id; readonly mode: Mode }

/** Which entry of the navigation a page belongs to. */
export type Section = 'overview' | 'requests' | 'keys'

type Content = {
  readonly status?: number
  readonly title: string
  readonly section: Section | null
  readonly where: Where
  /** Whose page it is; null while nobody can be asked who somebody is. */
  readonly who: Who | null
  readonly main: Html
}

type Suspended = { readonly since: Date; readonly reason: string }

type Who = {
  readonly workspace: { readonly id: Id; readonly name: string; readonly suspended: Suspended | null }
  readonly workspaces: readonly { readonly id: Id; readonly name: string }[]
  readonly session: { readonly name: string; readonly email: string }
}

type Parts = {
  readonly pages: Pick<Pages, 'whole' | 'assets'>
  readonly baseUrl: string | undefined
}

export type Frame = ReturnType<typeof createFrame>

const NAVIGATION = [
  ['overview', '', 'home', 'Overview'],
  ['requests', '/requests', 'list', 'Requests'],
  ['keys', '/keys', 'key', 'Keys'],
] as const satisfies readonly (readonly [Section, string, Parameters<typeof icon>[0], string])[]

const HATCH = html`<svg class="fb-defs" aria-hidden="true"><defs><pattern id="fb-hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="fb-hatch-paper" width="6" height="6"/><path class="fb-hatch-line" d="M0 0V6"/></pattern></defs></svg>`

/** Secrets do not go back into a page. */
const NOT_SHOWN = /password|secret|^code$/

/** What every page of the console has around it. */
export function createFrame({ pages, baseUrl }: Parts) {
  const { assets } = pages
  const script = {
    src: assets.console.script,
    connectTo: baseUrl === undefined ? [] : [new URL(baseUrl).origin],
  }

  function page({ status = 200, title, section, where, who, main }: Content): Page {
    const links = linksOf(where, section)
    const mark = brand('/', assets)
    return pages.whole(
      { status, title, stylesheets: assets.console.stylesheets, script },
      html`${HATCH}
<a class="fb-skip" href="#content">Skip to the content</a>
<div class="fb-app">
<aside class="fb-side" aria-label="Console"><div>${mark}
${workspaceChoice(where, who)}${modeSwitch(where)}
<nav aria-label="Console">${links.map(({ href, current, shape, text }) => html`<a href="${href}"${current}>${icon(shape)}${text}</a>`)}<h2>You</h2>${OWN.map(([href, shape, text]) => html`<a href="${href}">${icon(shape)}${text}</a>`)}</nav>
${who && whoShown(who)}</div></aside>
<div class="fb-main">
<header class="fb-appbar">${mark}<details class="fb-menu"><summary aria-label="Menu">${icon('menu')}</summary><ul>${links.map(({ href, current, text }) => html`<li><a href="${href}"${current}>${text}</a></li>`)}${OWN.map(([href, , text]) => html`<li><a href="${href}">${text}</a></li>`)}<li><a href="${otherMode(where).href}">${otherMode(where).text}</a></li></ul></details></header>
${where.mode === 'test' ? testBanner(where) : undefined}<main class="fb-body" id="content">
${who?.workspace.suspended && suspendedCallout(who.workspace.suspended)}${main}
</main></div></div>`,
    )
  }

  return {
    page,

    /** PostgreSQL can't be asked, and so nobody knows who somebody is. A form comes back as it was sent, under the same idempotency key. */
    outage(where: Where | null, asked: Pick<Asked, 'method' | 'path' | 'form'>): Page {
      const sent = asked.method === 'POST'
      const title = sent ? 'This was not confirmed' : 'We can’t look now'
      const main = html`<div class="fb-title"><div><h1>${title}</h1></div></div>
${callout('warn', 'Our database does not answer.', html`<p>Paid calls are refused with 503 until it does, and cost nothing. Nothing that was charged is lost.</p>`)}${
  sent
    ? html`<form class="resend" action="${asked.path}" method="post">${[...asked.form].filter(([name]) => name === FORM_TOKEN || !NOT_SHOWN.test(name)).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}<p>What you sent is kept in this page. Send it again in a moment: it changes once, however often you send it.</p><p><button class="fb-button" type="submit">Send it again</button></p></form>`
    : html`<p><a class="fb-button" href="${asked.path}">Try again</a></p>`
}`
      const shown =
        where === null
          ? pages.whole(
              { status: 503, title, stylesheets: assets.console.stylesheets },
              html`<main class="fb-body" id="content">${main}</main>`,
            )
          : page({ status: 503, title, section: null, where, who: null, main })
      return { ...shown, headers: { ...shown.headers, 'retry-after': '5' } }
    },
  }
}

const OWN = [
  ['/grants', 'agent', 'Apps and agents'],
  ['/sessions', 'person', 'Your account'],
] as const

function linksOf(where: Where, section: Section | null) {
  return NAVIGATION.map(([name, path, shape, text]) => ({
    href: hrefIn(where, path),
    shape,
    text,
    current: name === section ? html` aria-current="page"` : undefined,
  }))
}

export function hrefIn({ workspaceId, mode }: Where, path = ''): string {
  return `/console/${workspaceId}/${mode}${path}`
}

function modeSwitch(where: Where): Html {
  const link = (mode: Mode, text: string) =>
    html`<a href="${hrefIn({ ...where, mode })}"${where.mode === mode ? html` aria-current="true"` : undefined}>${text}</a>`
  return html`<div class="fb-mode" role="group" aria-label="Mode">${link('live', 'Live')}${link('test', 'Test')}</div>`
}

function otherMode(where: Where): { readonly href: string; readonly text: string } {
  const mode = where.mode === 'live' ? 'test' : 'live'
  return { href: hrefIn({ ...where, mode }), text: `Switch to ${mode}` }
}

function testBanner(where: Where): Html {
  const { href, text } = otherMode(where)
  return html`<aside class="fb-testing" aria-label="Mode"><span>${icon('flask')} <b>Test mode.</b> Calls spend test money.</span><a href="${href}">${text}</a></aside>
`
}

/** Above every page of the workspace, because nothing that it could be used for works. */
function suspendedCallout({ since, reason }: Suspended): Html {
  return callout(
    'warn',
    `The operator has suspended this workspace since ${timeOf(since)}.`,
    html`<p>${reason}</p><p>Keys and apps are refused, and nothing can be added or changed. Tasks that run go on. You can still read and export everything, and add credit. Ask the operator.</p>`,
  )
}

/** By links, so that it needs no script; the others stand below the one that is shown. */
function workspaceChoice(where: Where, who: Who | null): Html | undefined {
  if (who === null || who.workspaces.length < 2) return undefined
  const others = who.workspaces.filter(({ id }) => id !== who.workspace.id)
  return html`<details class="places"><summary><bdi>${who.workspace.name}</bdi></summary><ul>${others.map(({ id, name }) => html`<li><a href="${hrefIn({ ...where, workspaceId: id })}"><bdi>${name}</bdi></a></li>`)}</ul></details>
`
}

function whoShown({ workspace, session }: Who): Html {
  return html`<div class="fb-who"><span class="fb-who__dot" aria-hidden="true">${initialsOf(workspace.name)}</span><span><b><bdi>${workspace.name}</bdi></b><span class="fb-sub">${session.email}</span></span></div>
`
}

function initialsOf(name: string): string {
  const [first = '', last = ''] = name.split(/\s+/)
  return `${[...first][0] ?? ''}${[...last][0] ?? ''}`.toUpperCase()
}
