import { isSoldByUnit, isTask } from '../../catalogue/operation.ts'
import type { CallRequest } from '../call-request.ts'
import type { Plan } from '../plan.ts'
import { createDataPlan } from './data.ts'
import { createModelPlan } from './model.ts'
import { createVideoPlan } from './video.ts'

type Parts = Parameters<typeof createDataPlan>[0] &
  Parameters<typeof createModelPlan>[0] &
  Parameters<typeof createVideoPlan>[0]

/** Which of the plans a call has: what is sold by the unit, a model's answer, or a video that takes minutes. */
export function createPlans(parts: Parts): (request: CallRequest) => Promise<Plan> {
  const ofData = createDataPlan(parts)
  const ofModels = createModelPlan(parts)
  const ofVideos = createVideoPlan(parts)
  return (request) => {
    const { operation } = request
    if (isTask(operation)) return ofVideos(request, operation)
    return isSoldByUnit(operation) ? ofData(request, operation) : ofModels(request, operation)
  }
}
