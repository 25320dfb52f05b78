import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'
import { ROOT } from '../../harness/root.ts'
import { metric } from '../bench.ts'
import { PEER_NAMES } from '../load/peers.ts'
import { chartOf } from './charts.ts'

describe('the chart of overhead', () => {
  it('has a bar for each peer, with the version that is installed and what a request costs it', () => {
    const { dependencies } = JSON.parse(readFileSync(path.join(ROOT, 'bench/peer/package.json'), 'utf8'))
    const levels = [50, 200].flatMap((level) =>
      ['gateway', 'bare', 'postgres'].map((whose) => metric(`${whose}_us_c${level}`, 100, 'us')),
    )
    const peers = PEER_NAMES.map((name, at) => metric(`capacity_ratio_${name}`, 2, 'x', { baseline: 701 + at }))
    const chart = chartOf('overhead', [...levels, ...peers]) ?? ''
    assert.match(chart, new RegExp(`>Portkey ${dependencies['@portkey-ai/gateway']}, 50 connections<[^]*>701<`))
    assert.match(chart, new RegExp(`>LLMs ${dependencies['@musistudio/llms']}, 50 connections<[^]*>702<`))
  })
})
