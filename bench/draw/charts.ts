import type { Metric } from '../bench.ts'
import { PEER_NAMES, peerTitle } from '../load/peers.ts'
import { COLOURS, document, dot, line, rectangle, text } from './svg.ts'

/** The picture of a benchmark, from its figures; undefined of one that has none. */
export function chartOf(name: string, metrics: readonly Metric[]): string | undefined {
  const figure = (of: string) => metrics.find((one) => one.name === of)?.value ?? Number.NaN
  switch (name) {
    case 'overhead':
      return barChart('CPU of the server for a request, µs', [
        ...[50, 200].flatMap((level) => [
          { label: `bare proxy, ${level} connections`, value: figure(`bare_us_c${level}`), colour: COLOURS.bare },
          { label: `ours, metered, ${level} connections`, value: figure(`gateway_us_c${level}`), colour: COLOURS.ours },
          {
            label: `PostgreSQL beside it, ${level} connections`,
            value: figure(`postgres_us_c${level}`),
            colour: COLOURS.postgres,
          },
        ]),
        ...PEER_NAMES.map((name) => ({
          label: `${peerTitle(name)}, 50 connections`,
          value: baseline(metrics, `capacity_ratio_${name}`),
          colour: COLOURS.peer,
        })),
      ])
    case 'streams':
      return barChart('CPU of the server for a chunk of a stream, µs', [
        ...[
          { of: '200 events', suffix: '' },
          { of: '1,000 events', suffix: '_long' },
        ]
          // Nobody measures the long ones in a hurry.
          .filter(({ suffix }) => Number.isFinite(figure(`chunk_us${suffix}`)))
          .flatMap(({ of, suffix }) => [
            { label: `bare proxy, ${of}`, value: figure(`chunk_bare_us${suffix}`), colour: COLOURS.bare },
            { label: `ours, metered, ${of}`, value: figure(`chunk_us${suffix}`), colour: COLOURS.ours },
            {
              label: `${peerTitle('portkey')}, ${of}`,
              value: figure(`chunk_portkey_us${suffix}`),
              colour: COLOURS.peer,
            },
          ]),
      ])
    case 'overload':
      return barChart('Answered requests a second', [
        { label: 'at its peak', value: baseline(metrics, 'goodput_ratio_peak'), colour: COLOURS.bare },
        { label: 'asked for five times as many', value: figure('goodput'), colour: COLOURS.ours },
      ])
    case 'compare':
      return barChart('CPU for a call, before and now, µs', [
        ...[
          { of: '50 connections', name: 'c50' },
          { of: '200 connections', name: 'c200' },
          { of: 'one in flight', name: 'single' },
        ].flatMap(({ of, name }) => [
          { label: `gateway before, ${of}`, value: baseline(metrics, `gateway_us_${name}`), colour: COLOURS.bare },
          { label: `gateway now, ${of}`, value: figure(`gateway_us_${name}`), colour: COLOURS.ours },
          { label: `PostgreSQL before, ${of}`, value: baseline(metrics, `postgres_us_${name}`), colour: COLOURS.bare },
          { label: `PostgreSQL now, ${of}`, value: figure(`postgres_us_${name}`), colour: COLOURS.postgres },
        ]),
      ])
    case 'growth':
      return growthChart(metrics)
    case 'holds':
      return barChart('Answered whole, of what an oracle could admit, %', [
        ...[
          { of: '1 USD, 15 USD a million', name: 'dear_usd' },
          { of: '1 USD, 2 USD a million', name: 'plain_usd' },
          { of: 'a minute of a free key', name: 'free_key' },
        ].flatMap(({ of, name }) => [
          { label: `${of}, full`, value: 100 * figure(`admitted_share_${name}_full`), colour: COLOURS.bare },
          { label: `${of}, growing`, value: 100 * figure(`admitted_share_${name}`), colour: COLOURS.ours },
        ]),
      ])
    default:
      return undefined
  }
}

function baseline(metrics: readonly Metric[], name: string): number {
  return metrics.find((one) => one.name === name)?.baseline ?? Number.NaN
}

type Bar = { readonly label: string; readonly value: number; readonly colour: string }

const WIDTH = 760
const BAR = { height: 20, gap: 8, left: 250, right: 70, top: 44 }

function barChart(title: string, bars: readonly Bar[]): string {
  const most = Math.max(...bars.map(({ value }) => value))
  const scale = (WIDTH - BAR.left - BAR.right) / most
  const parts = bars.flatMap(({ label, value, colour }, at) => {
    const y = BAR.top + at * (BAR.height + BAR.gap)
    return [
      text(BAR.left - 8, y + 14, label, { anchor: 'end' }),
      rectangle(BAR.left, y, value * scale, BAR.height, colour),
      text(BAR.left + value * scale + 6, y + 14, short(value)),
    ]
  })
  const height = BAR.top + bars.length * (BAR.height + BAR.gap) + 8
  return document(WIDTH, height, title, [text(12, 24, title, { size: 15, weight: 600 }), ...parts])
}

const PANELS = [
  ['processes', 'gateway processes'],
  ['in_flight', 'calls in flight'],
  ['regulars', 'stored accounts, of which 1,000 call'],
  ['accounts', 'accounts, all of which call'],
  ['charges', 'stored charges'],
] as const
const PANEL = { width: 370, height: 230, left: 46, right: 24, top: 40, bottom: 34 }

function growthChart(metrics: readonly Metric[]): string {
  const parts = PANELS.flatMap(([what, label], at) =>
    panel(metrics, what, label, (at % 2) * PANEL.width, 34 + Math.floor(at / 2) * PANEL.height),
  )
  const title = 'CPU of a call as things grow, µs'
  const key = [
    rectangle(430, 12, 12, 12, COLOURS.ours),
    text(448, 22, 'gateway'),
    rectangle(520, 12, 12, 12, COLOURS.postgres),
    text(538, 22, 'PostgreSQL'),
  ]
  return document(2 * PANEL.width, 34 + Math.ceil(PANELS.length / 2) * PANEL.height, title, [
    text(12, 24, title, { size: 15, weight: 600 }),
    ...key,
    ...parts,
  ])
}

function panel(metrics: readonly Metric[], what: string, label: string, x: number, y: number): string[] {
  const series = (['gateway', 'postgres'] as const).map((whose) => ({
    whose,
    points: seriesOf(metrics, `${whose}_us_${what}_`),
  }))
  const most = Math.max(...series.flatMap(({ points }) => points.map(({ value }) => value)))
  const sizes = series[0]?.points.map(({ size }) => size) ?? []
  const [inner, tall] = [PANEL.width - PANEL.left - PANEL.right, PANEL.height - PANEL.top - PANEL.bottom]
  const place = (at: number) => x + PANEL.left + (sizes.length < 2 ? 0 : (at * inner) / (sizes.length - 1))
  const level = (value: number) => y + PANEL.top + tall - (value / most) * tall
  return [
    text(x + 12, y + 22, label, { weight: 600 }),
    ...[0, most / 2, most].flatMap((value) => [
      line(
        [
          [x + PANEL.left, level(value)],
          [x + PANEL.width - PANEL.right, level(value)],
        ],
        COLOURS.grid,
      ),
      text(x + PANEL.left - 6, level(value) + 4, short(value), { anchor: 'end', size: 11 }),
    ]),
    ...sizes.map((size, at) => {
      const anchor = at === sizes.length - 1 ? 'end' : 'middle'
      return text(place(at), y + PANEL.height - 14, size.toLocaleString('en'), { anchor, size: 11 })
    }),
    ...series.flatMap(({ whose, points }) => {
      const colour = whose === 'gateway' ? COLOURS.ours : COLOURS.postgres
      const places = points.map(({ value }, at) => [place(at), level(value)] as const)
      return [line(places, colour, 2), ...places.map(([px, py]) => dot(px, py, colour))]
    }),
  ]
}

function seriesOf(metrics: readonly Metric[], prefix: string): { readonly size: number; readonly value: number }[] {
  return metrics
    .filter(({ name }) => name.startsWith(prefix))
    .map(({ name, value }) => ({ size: Number(name.slice(prefix.length)), value }))
}

function short(value: number): string {
  return value < 100 ? String(Number(value.toPrecision(3))) : Math.round(value).toLocaleString('en')
}
