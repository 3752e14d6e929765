import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeService } from '../../../scripts/description.ts'
import { byId, isCallable } from './operations.ts'
import { OWN } from './presented.ts'
import type { Item } from './tool.ts'

const SECRET = /^(?!has_)(?:.*_)?(?:secret|password|token|signing_key|endpoint|download_url)$/

test('no operation that an assistant may call returns a secret, a link that needs no key, or a text that passes as ours', async () => {
  const description = await describeService<Item>()
  const schemas = (description['components'] as { schemas: Record<string, Item> }).schemas
  /** Names of all members of a schema, each named one once. */
  const membersOf = (schema: unknown, seen: Set<string>): string[] => {
    if (typeof schema !== 'object' || schema === null) return []
    const { $ref, properties = {} } = schema as { $ref?: string; properties?: Record<string, unknown> }
    if ($ref !== undefined) {
      if (seen.has($ref)) return []
      return membersOf(schemas[$ref.slice($ref.lastIndexOf('/') + 1)], seen.add($ref))
    }
    return [...Object.keys(properties), ...Object.values(schema).flatMap((one) => membersOf(one, seen))]
  }
  const callable = [...byId(description)].filter(([, operation]) => isCallable(operation))
  assert.ok(callable.length > 150, String(callable.length))
  const faults = callable.flatMap(([id, { spec }]) => {
    const members = membersOf((spec['responses'] as Record<string, unknown>)['200'], new Set())
    return members.filter((name) => SECRET.test(name)).map((name) => `${id}: ${name}`)
  })
  assert.deepEqual([...new Set(faults)], [])
  const all = [...byId(description).values()].flatMap(({ spec }) => membersOf(spec['responses'], new Set()))
  const own = new Set(all.filter((name) => OWN.has(name)))
  assert.deepEqual(
    [...own].sort(),
    ['explanation', 'operation', 'short-explanation'],
    'texts of others would pass as our own',
  )
})
