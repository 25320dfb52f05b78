import type { Catalogue } from '../../catalogue/operation.ts'
import type { Contract } from '../../contracts/contract.ts'
import { notSold } from '../../gateway/require-sold.ts'
import { Fault } from '../../kernel/fault.ts'
import { type Html, html } from '../../kernel/html.ts'
import { icon } from '../../pages/icons.ts'
import type { Page } from '../../pages/page.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import type { Shell } from '../shell.ts'
import type { Described, KeptReference, Reference } from './described.ts'
import { answersOf, bodyOf, errorsOf, parametersOf, shownMethod, shownPath } from './parts.ts'
import { words } from './words.ts'

type Parts = {
  readonly shell: Shell
  /** What this process serves now. */
  readonly reference: KeptReference
  /** Of which there are pages that say what an operation costs and how it is called. */
  readonly catalogue: Pick<Catalogue, 'find'>
}

const TITLES: Readonly<Record<string, string>> = { account: 'Your account', links: 'Linked accounts' }
const titleOf = (tag: string) => TITLES[tag] ?? tag.charAt(0).toUpperCase() + tag.slice(1)

/** The API, page by page, from the bytes of the contract. */
export function referenceRoutes({ shell, reference: kept, catalogue }: Parts): readonly PageRoute[] {
  // Each is made once: they change with the contract alone.
  let pages = new Map<string, Page>()
  let pagesOf: Contract | undefined

  function known() {
    const now = kept()
    if (now === null) throw new Fault('contract_unavailable')
    if (pagesOf !== now.contract) pages = new Map()
    pagesOf = now.contract
    return now
  }

  function page(path: string, make: () => Page): Page {
    const made = pages.get(path) ?? make()
    pages.set(path, made)
    return made
  }

  function indexPage(): Page {
    const { contract, reference } = known()
    const source = `/api/contracts/source?hash=${contract.contentHash}&bundled=1`
    return page('/reference', () =>
      shell.page({
        title: 'API reference',
        description: 'Every endpoint: parameters, bodies, answers and refusals, rendered from the contract.',
        path: '/reference',
        section: 'reference',
        main: indexOf(groupsOf(reference), { source, contract }),
      }),
    )
  }

  function pageOf(id: string): Page {
    const { reference } = known()
    const one = reference.find(id)
    if (one === undefined) throw catalogue.find(id) ? notSold(id) : new Fault('route_not_found')
    const path = `/reference/${id}`
    const isSold = catalogue.find(id) !== undefined
    return page(path, () =>
      shell.page({
        title: `${one.summary} · API reference`,
        description: `${one.method} ${one.path}: ${one.summary}.`,
        path,
        section: 'reference',
        main: routePage(one, reference, { groups: groupsOf(reference), isSold }),
      }),
    )
  }

  return [
    { method: 'GET', path: '/reference', answer: indexPage },
    { method: 'GET', path: '/reference/:id', answer: ({ params: { id = '' } }) => pageOf(id) },
  ]
}

function groupsOf({ all, tags }: Reference): readonly Group[] {
  return tags.map((tag) => ({ ...tag, routes: all.filter((one) => one.tag === tag.name) }))
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
