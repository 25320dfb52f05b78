import encodeQR from 'qr'
import { type Html, html } from '../../kernel/html.ts'
import type { Secret } from '../../kernel/secret.ts'

/** Readers want four modules of nothing around it. */
const BORDER = 4

/** A text as a picture that phones read: one path of squares, dark on light whatever the page's colours are. */
export function qrCode(text: Secret, label: string): Html {
  const rows = encodeQR(text.reveal(), 'raw', { ecc: 'medium', border: BORDER })
  const squares = rows.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : '')))
  const size = rows.length
  return html`<svg class="scan__code" viewBox="0 0 ${size} ${size}" role="img" aria-label="${label}" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h${size}v${size}H0z"/><path fill="#000" d="${squares.join('')}"/></svg>`
}
