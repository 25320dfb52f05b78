import { html } from '../../kernel/html.ts'

/** A thousand calls of ten cents before an allowance of five dollars, to scale. */
export const CEILING = html`<div class="ceiling"><div class="ceiling__wide"><p class="ceiling__labels"><span><b>50</b> begin</span><span><b>950</b> are refused before an upstream is asked, and cost nothing</span></p>
<svg viewBox="0 0 1184 160" role="img" aria-label="A thousand calls of at most ten cents race for an allowance of five dollars. Fifty begin, nine hundred and fifty are refused.">
<defs><pattern id="cell-in" width="11.6" height="13.5" patternUnits="userSpaceOnUse"><rect class="cell-in" x=".5" y=".5" width="8.6" height="10.5" rx="1.5"/></pattern><pattern id="cell-out" width="11.6" height="13.5" patternUnits="userSpaceOnUse"><rect class="cell-out" x=".5" y=".5" width="8.6" height="10.5" rx="1.5"/></pattern></defs>
<g transform="translate(0 13)"><rect width="58" height="135" fill="url(#cell-in)"/></g>
<rect class="wall" x="66" y="0" width="5" height="160" rx="1"/>
<g transform="translate(84 13)"><rect width="1102" height="135" fill="url(#cell-out)"/></g></svg>
<p class="ceiling__foot">The black bar is the ceiling, $5.00. Each box is a call.</p></div><svg class="ceiling__tall" viewBox="0 0 340 690" role="img" aria-label="A thousand calls of at most ten cents race for an allowance of five dollars. Fifty begin, nine hundred and fifty are refused.">
<defs><pattern id="cell-in2" width="13.6" height="13.5" patternUnits="userSpaceOnUse"><rect class="cell-in" x=".5" y=".5" width="10.6" height="10.5" rx="1.5"/></pattern><pattern id="cell-out2" width="13.6" height="13.5" patternUnits="userSpaceOnUse"><rect class="cell-out" x=".5" y=".5" width="10.6" height="10.5" rx="1.5"/></pattern></defs>
<g><rect width="340" height="513" fill="url(#cell-out2)"/></g>
<text class="big" x="0" y="541">950</text><text x="54" y="541">are refused, and cost nothing</text>
<rect class="wall" y="559" width="340" height="5" rx="1"/><text class="note" x="340" y="587" text-anchor="end">the ceiling, $5.00</text>
<g transform="translate(0 599)"><rect width="340" height="27" fill="url(#cell-in2)"/></g>
<text class="big" x="0" y="656">50</text><text x="38" y="656">begin</text></svg></div>`

/** What is charged, held and left: before, after, and in doubt. */
export const WAYS = html`<div class="ways">
<div><svg class="fb-bar" role="img" aria-label="Before a call: 38 percent charged, 22 percent held"><rect class="left" width="100%" height="100%" rx="2"/><rect class="charged" width="38%" height="100%" rx="1"/><rect x="38%" width="22%" height="100%" fill="url(#fb-hatch)"/><rect class="edge" x="38%" y=".5" width="22%" height="13"/><rect class="stop" x="100%" y="-4" width="3" height="22" rx="1"/></svg><h3>Before: held</h3><p>The maximum cost of a call is set aside. Concurrent calls each have their own hold. What does not fit is refused with 402.</p></div>
<div><svg class="fb-bar" role="img" aria-label="After a call: 48 percent charged, nothing held"><rect class="left" width="100%" height="100%" rx="2"/><rect class="charged" width="48%" height="100%" rx="1"/><rect class="stop" x="100%" y="-4" width="3" height="22" rx="1"/></svg><h3>After: charged</h3><p>What was used is charged, never more than was held. The rest is released at once. If an upstream used more, that is our loss.</p></div>
<div><svg class="fb-bar" role="img" aria-label="In doubt: 38 percent charged, 22 percent still held"><rect class="left" width="100%" height="100%" rx="2"/><rect class="charged" width="38%" height="100%" rx="1"/><rect x="38%" width="22%" height="100%" fill="url(#fb-hatch)"/><rect class="edge" x="38%" y=".5" width="22%" height="13"/><rect class="stop" x="100%" y="-4" width="3" height="22" rx="1"/></svg><h3>In doubt: still held</h3><p>If a process dies in between, the call is unsettled and its money stays held until there is evidence. After 24 hours without any, you pay nothing.</p></div>`
