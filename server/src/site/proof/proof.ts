import { type Html, html } from '../../kernel/html.ts'
import { once } from '../../kernel/once.ts'
import { icon } from '../../pages/icons.ts'
import type { PageRoute } from '../../pages/page-route.ts'
import { minuteOf } from '../dates.ts'
import type { Shell } from '../shell.ts'
import { type Goal, goalsOf, goalTable } from './goals.ts'
import { growthCharts } from './growth.ts'
import { type Proof, readProofs, type Shown } from './read-proofs.ts'

type Parts = { readonly shell: Shell; readonly docs: string }

/** Those that tell most of the promise, first. */
const FIRST = [
  ...['ledger-races', 'idempotency', 'refusals', 'every-cost', 'faults', 'ledger-death', 'rolling-restarts'],
  ...['many-streams', 'failover', 'prices', 'mandates', 'links-secrets'],
]
const SENTENCES = 2
/** What is shorter names a case, such as a seed, and says nothing by itself. */
const SHORTEST = 15

/** What the papers claim in figures, from the files in which they were recorded. */
export function proofRoutes({ shell, docs }: Parts): readonly PageRoute[] {
  const page = once(() => {
    const proofs = readProofs(docs)
    return shell.page({
      title: 'Proof',
      description: 'Figures that tests and measurements recorded, with their dates; goals missed beside goals met.',
      path: '/proof',
      section: 'proof',
      main: pageOf(proofs, goalsOf(proofs)),
    })
  })
  return [{ method: 'GET', path: '/proof', answer: page }]
}

function pageOf(proofs: readonly Proof[], goals: readonly Goal[]): Html {
  const missed = goals.filter(({ isMet }) => !isMet).length
  const shown = proofs.reduce((sum, proof) => sum + proof.shown.length, 0)
  const charts = growthCharts(proofs.find(({ name }) => name === 'bench-growth'))
  return html`<div class="fb-wrap"><div class="lead"><h1>What was shown, and what misses its goal</h1><p>${shown} statements in ${proofs.length} files, each recorded by a program of the repository, with the moment and the seed. ${missed} of ${goals.length} goals of speed are missed.</p>${staleWords(proofs)}</div></div>
<section class="band" aria-labelledby="holds"><div class="fb-wrap"><div class="band__head"><h2 id="holds">What holds</h2><p>The sentences are titles of tests: they ran at these counts, and would have failed otherwise.</p></div><div class="fb-scroll" tabindex="0" role="region" aria-label="Statements with their figures"><table class="fb-table fb-table--plain claims"><thead><tr><th scope="col">What was shown</th><th scope="col">Figures</th><th scope="col">Recorded</th></tr></thead><tbody>${FIRST.flatMap((name) => proofs.filter((proof) => proof.name === name)).map(claim)}</tbody></table></div></div></section>
<section class="band" aria-labelledby="speed"><div class="fb-wrap"><div class="band__head"><h2 id="speed">What misses its goal</h2><p>${missed} of ${goals.length} goals of speed are missed. The ledger is the price of the promise, and this says what it is. The dashed line is the goal; what is to its right has missed it by that many times.</p></div>${goalTable(goals)}</div></section>
${charts.length === 0 ? undefined : html`<section class="band" aria-labelledby="grows"><div class="fb-wrap"><div class="band__head"><h2 id="grows">As it grows</h2><p>CPU of one call: the gateway’s in dark blue, PostgreSQL’s in teal.</p></div><div class="pair pair--even">${charts}</div></div></section>`}
<section class="band" aria-labelledby="files"><div class="fb-wrap"><div class="band__head"><h2 id="files">Every file</h2><p>${proofs.length} files in docs/proof. Open one to read what it shows.</p></div><div class="files">${proofs.map(fileOf)}</div></div></section>`
}

/** A proof is stale where what it exercised has changed since; who runs the sources is not told. */
function staleWords(proofs: readonly Proof[]): Html | undefined {
  if (proofs.every(({ isStale }) => isStale === null)) return undefined
  const stale = proofs.filter(({ isStale }) => isStale === true).length
  return html`<p class="fb-soft">${stale} of ${proofs.length} were recorded before the last change of what they exercise, as this program was built. They are marked, and hold for the program of their date.</p>`
}

function claim(proof: Proof): Html {
  const rows = proof.shown.filter(({ sentence }) => sentence.length > SHORTEST).slice(0, SENTENCES)
  return html`${rows.map(
    (shown) =>
      html`<tr><td class="what">${shown.sentence}</td><td>${figures(shown)}</td><td class="src">${recorded(proof)}</td></tr>\n`,
  )}`
}

function figures({ figures: some }: Shown): Html {
  return html`${some.map(({ name, value }, at) => html`${at === 0 ? '' : ', '}<b class="fb-num">${typeof value === 'number' ? value.toLocaleString('en') : value}</b> ${name}`)}`
}

function recorded({ name, recordedAt, seed, isStale }: Proof): Html {
  return html`<span class="src"><a href="#f-${name}">${name}.json</a><span>${minuteOf(recordedAt)}${seed === null ? '' : ` · seed ${seed}`}</span>${isStale === true ? staleBadge() : undefined}</span>`
}

function staleBadge(): Html {
  return html`<span class="fb-badge fb-badge--warn">${icon('clock')}Changed since</span>`
}

function fileOf(proof: Proof): Html {
  const { name, recordedAt, seed, shown, metrics, isStale } = proof
  return html`<details class="fb-more" id="f-${name}"><summary><span class="fb-code">${name}.json</span> <span class="fb-dim fb-num">${minuteOf(recordedAt)} · ${metrics.length > 0 ? 'a measurement' : seed === null ? 'without chance' : `seed ${seed}`}</span>${isStale === true ? staleBadge() : undefined}</summary><ul>${shown.map((one) => html`<li>${one.sentence}${one.figures.length === 0 ? '' : ': '}${figures(one)}</li>`)}${metrics.map((metric) => html`<li>${metric.name.replaceAll('_', ' ')}: <b class="fb-num">${metric.value.toLocaleString('en')}</b> ${metric.unit}${metric.goal === null ? '' : `, goal ${metric.goal}`}</li>`)}</ul></details>\n`
}
