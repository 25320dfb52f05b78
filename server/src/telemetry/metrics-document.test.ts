import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createMetrics } from './metrics.ts'
import { documentedMetrics, metricsDocument } from './metrics-document.ts'

const figures = () => ({ reservedBytes: 0, largeBytes: 0, leases: 0, waiting: 0, waits: 0, refusals: 0 })

/** What a process tells Prometheus of its metrics. */
async function exposed(): Promise<readonly string[]> {
  const metrics = createMetrics()
  metrics.watchMemory({ figures })
  return [...(await metrics.expose()).matchAll(/^# TYPE (\w+ \w+)$/gm)].map(([, typed]) => typed ?? '')
}

describe('the document of metrics', () => {
  const { own, runtime } = documentedMetrics()
  const all = [...own, ...runtime]
  const text = metricsDocument()

  it('has every metric of the service with its type, and no other', async () => {
    const ours = (await exposed()).filter((typed) => typed.startsWith('farebox_'))
    assert.ok(ours.length >= 20, String(ours.length))
    assert.deepEqual(own.map(({ name, type }) => `${name} ${type}`).toSorted(), ours.toSorted())
  })

  it('has every metric of the process with its type; some are there on Linux alone', async () => {
    const theirs = (await exposed()).filter((typed) => !typed.startsWith('farebox_'))
    const documented = runtime.map(({ name, type }) => `${name} ${type}`)
    assert.deepEqual(
      theirs.filter((typed) => !documented.includes(typed)),
      [],
    )
    if (process.platform === 'linux') assert.deepEqual(documented.toSorted(), theirs.toSorted())
  })

  it('says of each its unit, where its name has one, and each of its labels', () => {
    const units = [
      [/_seconds(?:_total)?$/, /seconds/i],
      [/_bytes(?:_total)?$/, /bytes/],
      [/_usd(?:_total)?$/, /USD/],
    ] as const
    const silent = all.filter(
      ({ name, help, labelNames }) =>
        units.some(([ending, word]) => ending.test(name) && !word.test(help)) ||
        labelNames.some((label) => !new RegExp(`\\b${label}\\b`).test(help)),
    )
    assert.deepEqual(silent, [])
  })

  it('has a part for each, with type, labels and what to do', () => {
    const headings = [...text.matchAll(/^### (\w+)$/gm)].map(([, name]) => name)
    assert.deepEqual(
      headings,
      all.map(({ name }) => name),
    )
    assert.equal(text.match(/^- Type: (counter|gauge|histogram|summary)$/gm)?.length, all.length)
    assert.equal(text.match(/^- Labels: \S/gm)?.length, all.length)
    assert.deepEqual(
      own.filter(({ advice }) => advice === ''),
      [],
    )
    assert.match(
      text,
      /^### farebox_http_requests_total\n\n.+\n\n- Type: counter\n- Labels: `family`, `method`, `status`\n/m,
    )
  })
})
