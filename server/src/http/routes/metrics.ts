import type { Metrics } from '../../telemetry/metrics.ts'
import type { Family } from '../families.ts'

/** On the operators' listener alone: what is measured says more about an installation than its callers should know. */
export function metricsFamily(metrics: Pick<Metrics, 'contentType' | 'expose'>): Family {
  return {
    name: 'metrics',
    prefix: '/metrics',
    dialect: 'problem',
    register(scope) {
      scope.get('', { config: { access: 'public' } }, async (_, reply) =>
        reply.type(metrics.contentType).send(await metrics.expose()),
      )
    },
  }
}
