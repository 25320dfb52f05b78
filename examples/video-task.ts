/** Makes a video: a task that is created, polled until it has ended, and charged when it has succeeded. */
// In a project of your own: import { Farebox } from '@farebox/client'
import { Farebox } from '../client/src/index.ts'

const { FAREBOX_URL, FAREBOX_KEY } = process.env
if (!FAREBOX_URL || !FAREBOX_KEY) throw new Error('Set FAREBOX_URL and FAREBOX_KEY: npm run dev prints both.')

const farebox = new Farebox({ baseUrl: FAREBOX_URL, apiKey: FAREBOX_KEY })

const created = await farebox.call(
  'video_synthesis',
  {
    model: 'sandbox/video',
    input: { prompt: 'a fox in the snow' },
    parameters: { duration: 5, resolution: '720P' },
  },
  { maxCostUsd: '1' },
)
const taskId = created.data.output.task_id
console.log(`task: ${taskId}`)
console.log(`held: ${created.held?.usd} USD`)

// Polls every 3 to 5 seconds. It throws a TaskError where the task fails; a failed task costs nothing.
const { data: task, cost } = await farebox.tasks.wait(taskId, {
  onProgress: ({ status, elapsedMs }) => console.log(`${(elapsedMs / 1000).toFixed(0)} s: ${status}`),
})

console.log(`video: ${task.output.video_url}`)
console.log(`cost: ${cost?.usd} USD`)
