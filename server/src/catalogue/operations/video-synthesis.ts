import type { TaskOperation } from '../operation.ts'

export const videoSynthesis: TaskOperation = {
  id: 'video_synthesis',
  summary: 'Have a model make a video, as a task that takes minutes',
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
