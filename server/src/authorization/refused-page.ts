import { html } from '../kernel/html.ts'
import { wayOn } from '../pages/form.ts'
import type { Page, Pages } from '../pages/page.ts'

export type Refused = {
  readonly error: string
  readonly error_description?: string | undefined
  /** The host that says what the app is, where this installation could not reach it. */
  readonly unreached?: string
  /** Where it would be told of it, as a person is shown that. */
  readonly destination?: string
}

const TEXT_LIMIT = 300
const NOT_VALID =
  'The request of the app is not valid, or has expired. Nothing was allowed. Go back to the app and try again. If it happens again, tell the maker of the app.'

function notReached(host: string): string {
  return `The app describes itself at ${host}, and this server could not reach that host. Nothing was allowed. The app is not at fault: ask the operator of this server to allow requests to ${host}, or to switch off documents of apps (outbound.access: none), so that apps register here instead.`
}

/** An app sent somebody here with something that is not right. There is nowhere to go from here but back to the app. */
export function refusedPage({ card }: Pick<Pages, 'card'>, refused: Refused): Page {
  const { error, error_description: text = '', destination, unreached } = refused
  const title = 'This app can’t be connected'
  return card({
    isNarrow: true,
    status: 400,
    title,
    main: html`<h1>${title}</h1><p class="card-page__say">${unreached === undefined ? NOT_VALID : notReached(unreached)}</p>
<p class="fault__id"><span class="fb-dim">Reason</span> <code>${error}</code></p>
<p class="fb-hint">${text.slice(0, TEXT_LIMIT)}</p>${
      destination === undefined
        ? null
        : html`<p class="fb-hint">It asked to send you to <b>${destination}</b>. You stay here, because nobody has allowed this app yet.</p>`
    }
${wayOn('/grants', 'See what you allow', true)}`,
  })
}
