/** Limits of usage: mailgun-java's MailgunLimitsApi. */
import type { CallTable } from '../tables.ts'

const PATH = '/v1/thresholds/limits'
const LIMIT = {
  ...{ name: 'seed-cap', metric: 'seed_test_count', comparator: '<', limit: '50', dimension: 'domain' },
  filters: [{ dimension: 'domain', comparator: 'contains', values: ['mg.example.com'] }],
  ...{ period: '1d', description: 'cap seed tests' },
}
const READ = { id: '', created_at: '', updated_at: '', ...LIMIT }
const java = { client: 'java' } as const

export const TABLE: CallTable = {
  calls: [
    { ...java, call: 'createLimitThreshold', method: 'POST', path: PATH, json: LIMIT, response: READ },
    {
      ...java,
      call: 'listLimitThresholds',
      method: 'GET',
      path: PATH,
      response: { items: [READ], total: 1 },
    },
    { ...java, call: 'getLimitThreshold', method: 'GET', path: `${PATH}/seed-cap`, response: READ },
    {
      ...{ ...java, call: 'updateLimitThreshold', method: 'PUT', path: `${PATH}/seed-cap`, json: LIMIT },
      response: { message: 'Limit updated' },
    },
    {
      ...{ ...java, call: 'deleteLimitThreshold', method: 'DELETE', path: `${PATH}/seed-cap` },
      response: { message: 'Limit deleted' },
    },
  ],
}
