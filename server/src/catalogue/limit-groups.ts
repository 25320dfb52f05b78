/**
 * What limits an operation beside the requests a minute that limit every one: the tier's tokens a minute, the tier's
 * calls at once, or a limit of its own group of endpoints.
 */
export type LimitName = 'tokens' | 'concurrency' | GroupName

export const GROUPS = {
  deep_research: { requestsPerMinute: 5 },
  generate_content: { requestsPerMinute: 30 },
  images: { requestsPerMinute: 30 },
  video_tasks: { tasksAtOnce: 3 },
} as const

export type GroupName = keyof typeof GROUPS
