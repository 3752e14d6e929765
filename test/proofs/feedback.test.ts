import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EVENT_NAMES } from '../../src/watching/events/event.ts'
import { WEBHOOK_TYPES } from '../../src/watching/webhooks/types.ts'
import { hasTest } from '../support/coverage.ts'
import { startTestService } from '../support/service.ts'
import { EVENT_PROOFS, OPERATION_PROOFS, REASON_PROOFS, RECEPTION_PROOFS, WAYS } from './feedback.ts'
import type { Proof } from './templates-lists-suppressions.ts'

const missing = (proofs: readonly (Proof | null)[]) =>
  proofs.flatMap((proof) => {
    const [file, ...names] = proof ?? ['']
    return names.filter((name) => !hasTest(file, name)).map((name) => `${file}: ${name}`)
  })

test('every proof is an existing test', () => {
  const events = Object.values(EVENT_PROOFS).flatMap(({ fields, payload, scenario }) => [
    fields,
    payload,
    scenario,
  ])
  const operations = Object.values(OPERATION_PROOFS).flatMap(({ does, fails }) => [...does, ...fails])
  const others = [WAYS, REASON_PROOFS, RECEPTION_PROOFS].flatMap((proofs) => Object.values(proofs))
  assert.deepEqual(missing([...events, ...operations, ...others]), [])
})

test('every event has proofs, among them a scenario', () => {
  const named = new Set(Object.keys(EVENT_PROOFS).map((key) => key.split(',')[0]))
  assert.deepEqual([...named].sort(), [...EVENT_NAMES].sort())
  // Only the events of webhooks.md rule 10 have no webhook.
  const withoutWebhook = Object.entries(EVENT_PROOFS).filter(([, { payload }]) => payload === null)
  const types = EVENT_NAMES.filter(
    (name) => name === 'failed' || (WEBHOOK_TYPES as readonly string[]).includes(name),
  )
  assert.deepEqual(
    withoutWebhook.map(([name]) => name).sort(),
    EVENT_NAMES.filter((name) => !types.includes(name)).sort(),
  )
})

test('every operation on bounces, policies, tracking hosts and statistics that is described has proofs', async (t) => {
  const service = await startTestService(t)
  type Described = { operationId: string; 'x-alias-of'?: string; tags: string[] }
  const { paths } = (await service.call('GET', '/openapi.json')).body as {
    paths: Record<string, Record<string, Described>>
  }
  const ids = Object.entries(paths).flatMap(([path, methods]) =>
    Object.values(methods)
      .filter(
        ({ tags: [tag = ''] }) =>
          ['Bounce Classification', 'Tracking host', 'Stats', 'Tags'].includes(tag) ||
          path.includes('suppression-policy'),
      )
      .flatMap(({ operationId, 'x-alias-of': main }) => (main === undefined ? operationId : [])),
  )
  assert.deepEqual(ids.sort(), Object.keys(OPERATION_PROOFS).sort())
})
