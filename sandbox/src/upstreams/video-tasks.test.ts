import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { LastSecond } from './last-second.ts'
import { USUAL_COURSE } from './video-course.ts'
import { VideoTasks } from './video-tasks.ts'

const job = { model: 'm', prompt: 'A cat', seconds: 5, sr: 720, size: '1280*720', count: 1 }
const HOUR_MS = 3_600_000

function add(videos: VideoTasks, createdAtMs: number): string {
  const id = videos.nextId(1, createdAtMs)
  videos.add({ id, requestId: null, job, course: USUAL_COURSE, createdAtMs })
  return id
}

describe('the tasks that are kept', () => {
  it('are the newest, in pages of 5,000 that say how many were lost', () => {
    const videos = new VideoTasks(12_000)
    const ids = Array.from({ length: 20_000 }, () => add(videos, 0))
    assert.equal(new Set(ids).size, 20_000)
    const seen = []
    let page = videos.list(0, 0)
    assert.equal(page.lost, 8000)
    assert.equal(page.items.length, 5000)
    while (page.items.length > 0) {
      seen.push(...page.items.map(({ task_id }) => task_id))
      page = videos.list(page.next, 0)
    }
    assert.deepEqual(seen, ids.slice(8000))
    assert.equal(videos.get(ids[7999] ?? ''), undefined)
    assert.deepEqual(videos.list(30_000, 0), { items: [], next: 20_000, lost: 0 })
  })

  it('are not older than 25 hours', () => {
    const videos = new VideoTasks()
    const [first, second] = [add(videos, 0), add(videos, HOUR_MS)]
    add(videos, 25 * HOUR_MS)
    assert.ok(videos.get(first))
    add(videos, 25 * HOUR_MS + 1)
    assert.equal(videos.get(first), undefined)
    assert.ok(videos.get(second))
  })

  it('have ids that a sandbox started again does not give once more', () => {
    assert.notEqual(new VideoTasks().nextId(1, 1000), new VideoTasks().nextId(1, 1001))
  })
})

it('the last second is any, and forgets what came before it', () => {
  const second = new LastSecond()
  assert.deepEqual(
    [0, 500, 999, 1000, 1499, 1500, 5000].map((atMs) => second.add(atMs)),
    [1, 2, 3, 3, 4, 4, 1],
  )
  for (let at = 0; at < 10_000; at += 1) second.add(10_000 + at)
  assert.equal(second.count(19_999), 1000)
  assert.equal(second.count(30_000), 0)
})
