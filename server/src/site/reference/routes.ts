import type { Contract } from '../../contracts/contract.ts'
import { Fault } from '../../kernel/fault.ts'
import { type Html, html } from '../../kernel/html.ts'
import { icon } from '../../pages/icons.ts'
import type { Page } from '../../pages/page.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import type { Shell } from '../shell.ts'
import type { Described, Reference } from './described.ts'
import { answersOf, bodyOf, errorsOf, parametersOf, shownMethod, shownPath } from './parts.ts'
import { words } from './words.ts'

type Parts = {
  readonly shell: Shell
  /** What this program serves; null where nothing could be verified. */
  readonly contract: Contract | null
  /** Its routes; null with it. */
  readonly reference: Reference | null
  /** Whether there is a page of what an operation costs and how it is called. */
  readonly isSold: (id: string) => boolean
}

const TITLES: Readonly<Record<string, string>> = { account: 'Your account', links: 'Linked accounts' }
const titleOf = (tag: string) => TITLES[tag] ?? tag.charAt(0).toUpperCase() + tag.slice(1)

/** The API, page by page, from the bytes of the contract. */
export function referenceRoutes({ shell, contract, reference, isSold }: Parts): readonly PageRoute[] {
  if (contract === null || reference === null) return [unavailable()]
  const known: Reference = reference
  const source = `/api/contracts/source?hash=${contract.contentHash}&bundled=1`
  const groups = reference.tags.map((tag) => ({ ...tag, routes: reference.all.filter((one) => one.tag === tag.name) }))
  const index = shell.page({
    title: 'API reference',
    description: 'Every endpoint: parameters, bodies, answers and refusals, rendered from the contract.',
    path: '/reference',
    section: 'reference',
    main: indexOf(groups, { source, contract }),
  })
  // They change with the program alone, so that each is made once.
  const pages = new Map<string, Page>()

  function pageOf(one: Described): Page {
    return shell.page({
      title: `${one.summary} · API reference`,
      description: `${one.method} ${one.path}: ${one.summary}.`,
      path: `/reference/${one.id}`,
      section: 'reference',
      main: routePage(one, known, { groups, isSold: isSold(one.id) }),
    })
  }

  return [
    { method: 'GET', path: '/reference', answer: () => index },
    {
      method: 'GET',
      path: '/reference/:id',
      answer({ params: { id = '' } }) {
        const found = reference.find(id)
        if (found === undefined) throw new Fault('route_not_found')
        const page = pages.get(id) ?? pageOf(found)
        pages.set(id, page)
        return page
      },
    },
  ]
}

function unavailable(): PageRoute {
  return {
    method: 'GET',
    path: '/reference',
    answer() {
      throw new Fault('contract_unavailable')
    },
  }
}

type Group = { readonly name: string; readonly description: string; readonly routes: readonly Described[] }

function indexOf(groups: readonly Group[], { source, contract }: { source: string; contract: Contract }): Html {
  return html`<div class="fb-wrap"><div class="lead"><h1>API reference</h1><p>Every endpoint of the gateway, rendered from the contract that it serves. The contract is OpenAPI 3.0.3, and is known by the SHA-256 of its bytes.</p>
<p class="route"><a href="${source}">openapi.json</a><a href="/docs">Guides</a><code class="hash">${contract.contentHash}</code></p></div>
${groups.map(({ name, description, routes }) => html`<section class="ref-list" id="${name}" aria-labelledby="h-${name}"><h2 id="h-${name}">${titleOf(name)}</h2><p class="fb-soft">${description}</p><ul>${routes.map((one) => html`<li><a href="/reference/${one.id}">${one.summary}</a><span>${shownMethod(one.method)}${shownPath(one.path)}</span></li>`)}</ul></section>`)}</div>`
}

type Beside = { readonly groups: readonly Group[]; readonly isSold: boolean }

function routePage(one: Described, reference: Reference, { groups, isSold }: Beside): Html {
  const group = groups.find(({ name }) => name === one.tag)
  const links = (group?.routes ?? []).map(
    ({ id }) =>
      html`<li><a href="/reference/${id}"${id === one.id ? html` aria-current="page"` : undefined}>${id}</a></li>`,
  )
  const [parameters, body] = [parametersOf(one, reference), bodyOf(one, reference)]
  const errors = errorsOf(one)
  return html`<div class="fb-wrap docs docs--wide">
<nav class="docs__nav" aria-label="Endpoints"><h2><a href="/reference#${one.tag}">${titleOf(one.tag)}</a></h2><ul>${links}</ul></nav>
<details class="docs__menu"><summary>Endpoints: ${titleOf(one.tag)}</summary><ul>${links}</ul></details>
<div><div class="ref-lead"><nav class="fb-crumbs" aria-label="Where you are"><a href="/reference">API reference</a>${icon('right')}<a href="/reference#${one.tag}">${titleOf(one.tag)}</a>${icon('right')}<span aria-current="page">${one.id}</span></nav><h1>${one.summary}</h1>
<p class="route">${shownMethod(one.method)}${shownPath(one.path)}</p>
${one.description === '' ? undefined : one.description.split('\n\n').map((part) => html`<p class="fb-soft">${words(part)}</p>`)}
<p class="route">${one.isPending ? html`<span class="fb-badge">${icon('clock')}Pending</span>` : html`<span class="fb-badge fb-badge--ok">${icon('check')}Complete</span>`}${one.isPublic ? html`<span class="fb-badge">Needs no credential</span>` : undefined}${isSold ? html`<a href="/catalogue/${one.id}">Price and code</a>` : undefined}</p></div>
<section class="ref"><div class="ref__cols"><div class="ref__text">
${parameters && html`<h2>Parameters</h2>${parameters}`}
${body && html`<h2>Body <span class="fb-dim">${one.body?.type}</span></h2>${body}`}
${one.body !== null && body === undefined ? html`<h2>Body</h2><p class="fb-soft">Passes through as it comes.</p>` : undefined}
</div><div class="ref__text"><h2>Answers</h2>${answersOf(one, reference)}</div></div></section>
${errors && html`<section class="ref" aria-labelledby="refusals"><h2 id="refusals">Refusals</h2><p class="fb-soft">A refusal before the call costs nothing.</p>${errors}</section>`}</div></div>`
}
