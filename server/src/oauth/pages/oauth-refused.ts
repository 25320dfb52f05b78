import type { Page, Pages } from '../../http/pages/page.ts'
import { html } from '../../kernel/html.ts'
import { wayOn } from './form.ts'

type Refused = { readonly error: string; readonly error_description?: string | undefined }

const TEXT_LIMIT = 300

/** An app sent somebody here with something that is not right. There is nowhere to go from here but back to the app. */
export function refusedPage({ door }: Pick<Pages, 'door'>, { error, error_description: text = '' }: Refused): Page {
  const title = 'This app can’t be let in'
  return door({
    isNarrow: true,
    status: 400,
    title,
    main: html`<h1>${title}</h1><p class="door__say">What it sent you here with is not right, or too old. Nothing was allowed. Go back to the app and try again; if it happens again, tell whoever makes it.</p>
<p class="fault__id"><span class="fb-dim">Reason</span> <code>${error}</code></p>
<p class="fb-hint">${text.slice(0, TEXT_LIMIT)}</p>
${wayOn('/grants', 'See what you allow', true)}`,
  })
}
