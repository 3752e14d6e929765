/** The machine description as others use it: a linter, and generators of clients (described-clients.test.ts). */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { before, test } from 'node:test'
import { createConfig, lintFromString, type RuleConfig } from '@redocly/openapi-core'
import { API_TYPES, apiTypes, type Description } from '../../scripts/api-types.ts'
import { describeService } from '../../scripts/description.ts'

/** Rules of the recommended set that do not fit, and why. */
const EXCEPTIONS: Record<string, RuleConfig> = {
  // Mailgun's own paths: `/v3/{domain_name}/tags` beside `/v3/domains/{name}`. The words win (router.ts).
  'no-ambiguous-paths': 'off',
  // Links in mail and the return from a sign-in only redirect. The test below wants an answer of each operation.
  'operation-2xx-response': 'off',
}

/** Withdrawn by the contract: always an error. */
const NEVER_SUCCEED = [
  'GET /v1/bounce-classification/domains/{domain}/events',
  'GET /v1/preview/tests/{test_id}/results',
]

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

test('every operation says what a success returns, and which errors there are', () => {
  const faults = Object.entries(description.paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, { responses }]) => {
      const statuses = Object.keys(responses)
      const isDescribed = Object.entries(responses).every(([status, response]) => {
        const name = response.$ref?.split('/').at(-1)
        const answer = name === undefined ? response : description.components.responses[name]
        const { description: words = '', content } = answer ?? {}
        if (content === undefined) return words !== '' && /^[23]/.test(status)
        return words !== '' && Object.values(content).every(({ schema }) => schema)
      })
      const isWhole =
        /^[23]/m.test(statuses.join('\n')) && statuses.includes('400') && statuses.includes('500')
      return isDescribed && isWhole ? [] : [`${method.toUpperCase()} ${path}`]
    }),
  )
  assert.deepEqual(faults, NEVER_SUCCEED)
})

test("the dashboard's types are those of the description", async () => {
  assert.equal(await readFile(API_TYPES, 'utf8'), apiTypes(description), 'run `node scripts/api-types.ts`')
})
