/** The machine description as others use it: a linter, and generators of clients (described-clients.test.ts). */
import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import { createConfig, lintFromString, type RuleConfig } from '@redocly/openapi-core'
import { describeService } from '../../scripts/description.ts'

/** Rules of the recommended set that do not fit, and why. */
const EXCEPTIONS: Record<string, RuleConfig> = {
  // Mailgun's own paths: `/v3/{domain_name}/tags` beside `/v3/domains/{name}`. The words win (path-table.ts).
  'no-ambiguous-paths': 'off',
  // Links in mail and the return from a sign-in only redirect. The test below wants an answer of each operation.
  'operation-2xx-response': 'off',
}

interface Described {
  operationId: string
  responses: Record<string, { description: string; content?: Record<string, { schema?: object }> }>
}
interface Description {
  paths: Record<string, Record<string, Described>>
}

let description: Description
before(async () => {
  description = await describeService<Description>()
})

test('the description passes the recommended rules of a linter', async () => {
  const config = await createConfig({ extends: ['recommended'], rules: EXCEPTIONS })
  const source = JSON.stringify(description)
  const problems = await lintFromString({ source, absoluteRef: 'openapi.json', config })
  const lines = problems.map(
    ({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer}: ${message}`,
  )
  assert.deepEqual(lines, [])
})
