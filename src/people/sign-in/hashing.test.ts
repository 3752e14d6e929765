import assert from 'node:assert/strict'
import { argon2Sync } from 'node:crypto'
import { test } from 'node:test'
import { TooManyWaiting } from '../../base/process/errors.ts'
import { argon2id } from './hashing.ts'

/** The least work that argon2 allows. */
const CHEAP = {
  nonce: new Uint8Array(16).fill(7),
  parallelism: 1,
  tagLength: 32,
  memory: 8,
  passes: 1,
}

test('of many passwords at once 200 wait, the others are rejected', async () => {
  const outcomes = await Promise.allSettled(
    Array.from({ length: 300 }, (_, n) => argon2id({ ...CHEAP, message: `password ${n}` })),
  )
  const refused = outcomes.filter((outcome) => outcome.status === 'rejected')
  assert.equal(refused.length, 99)
  assert.ok(refused.every(({ reason }) => reason instanceof TooManyWaiting))
  const last = outcomes[200]
  assert.ok(last?.status === 'fulfilled')
  assert.deepEqual(last.value, argon2Sync('argon2id', { ...CHEAP, message: 'password 200' }))
})

test('a thread that fails is replaced', async () => {
  await assert.rejects(argon2id({ ...CHEAP, message: 'x', memory: 1 }))
  assert.equal((await argon2id({ ...CHEAP, message: 'x' })).length, 32)
})
