import type { TaskOperation } from '../operation.ts'

export const videoSynthesis: TaskOperation = {
  id: 'video_synthesis',
  summary: 'Have a model make a video, as a task that takes minutes',
  asks: `video clip movie film animation animate animated footage short generate create make render produce text to
    video scene trailer cinematic ad commercial gif moving`,
  example: { model: '<model>', input: { prompt: 'A fox runs through the snow' } },
  category: 'video',
  isHighCost: true,
  method: 'POST',
  path: '/apis/v1/services/aigc/video-generation/video-synthesis',
  dialect: 'data',
  limits: ['video_tasks'],
  quotable: true,
  definition: 'complete',
  attempts: { requests: 3, refreshes: 0 },
  protocol: 'video',
}
