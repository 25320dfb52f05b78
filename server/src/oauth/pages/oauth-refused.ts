import type { Page, Pages } from '../../http/pages/page.ts'
import { html } from '../../kernel/html.ts'
import { wayOn } from './form.ts'

export type Refused = {
  readonly error: string
  readonly error_description?: string | undefined
  /** Where it would be told of it, as a person is shown that. */
  readonly destination?: string
}

const TEXT_LIMIT = 300

/** An app sent somebody here with something that is not right. There is nowhere to go from here but back to the app. */
export function refusedPage({ door }: Pick<Pages, 'door'>, refused: Refused): Page {
  const { error, error_description: text = '', destination } = refused
  const title = 'This app can’t be let in'
  return door({
    isNarrow: true,
    status: 400,
    title,
    main: html`<h1>${title}</h1><p class="door__say">What it sent you here with is not right, or too old. Nothing was allowed. Go back to the app and try again; if it happens again, tell whoever makes it.</p>
<p class="fault__id"><span class="fb-dim">Reason</span> <code>${error}</code></p>
<p class="fb-hint">${text.slice(0, TEXT_LIMIT)}</p>${
      destination === undefined
        ? null
        : html`<p class="fb-hint">It asked to send you on to <b>${destination}</b>. Nobody here has allowed this app yet, so you stay here.</p>`
    }
${wayOn('/grants', 'See what you allow', true)}`,
  })
}
