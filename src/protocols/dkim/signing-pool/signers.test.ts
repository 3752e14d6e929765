import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { type SigningKey, signMessage } from '../sign.ts'
import { createSigners } from './signers.ts'

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
const ed25519 = generateKeyPairSync('ed25519').privateKey
const KEYS: SigningKey[] = [
  { domain: 'example.com', selector: 'r', algorithm: 'rsa', privateKey: rsa },
  { domain: 'example.com', selector: 'e', algorithm: 'ed25519', privateKey: ed25519 },
]
const options = { signedAt: new Date(1_700_000_000_000) }

const message = (number: number) => ({
  headers: ['From: a@example.com', `Subject: =?utf-8?q?=C3=A9?= ${number}`, 'To: b@example.net'],
  body: [Buffer.from(`Hello  ${number}\r\n`), Buffer.from('.\r\n\r\n'.repeat(number % 7))],
})

test('threads sign as the calling one does, with every key', async (t) => {
  const signers = createSigners({ threads: 2, startAt: 1 })
  t.after(() => signers.close())
  const numbers = Array.from({ length: 200 }, (_, number) => number)
  // In two rounds: the first finds no thread running yet.
  for (const round of [numbers, numbers]) {
    const signed = await Promise.all(round.map((number) => signers.sign(message(number), KEYS, options)))
    const expected = await Promise.all(round.map((number) => signMessage(message(number), KEYS, options)))
    assert.deepEqual(signed, expected)
  }
})

test('one private key signs for two domains, in turns', async (t) => {
  const signers = createSigners({ threads: 1, startAt: 1 })
  t.after(() => signers.close())
  const numbers = Array.from({ length: 200 }, (_, number) => number)
  // Until the thread runs.
  await Promise.all(numbers.map((number) => signers.sign(message(number), KEYS, options)))
  const inTurns = (number: number): SigningKey[] => [
    { domain: `d${number % 2}.example`, selector: 's', algorithm: 'rsa', privateKey: rsa },
  ]
  const signed = await Promise.all(
    numbers.map((number) => signers.sign(message(number), inTurns(number), options)),
  )
  const expected = await Promise.all(
    numbers.map((number) => signMessage(message(number), inTurns(number), options)),
  )
  assert.deepEqual(signed, expected)
})

test('a message that cannot be signed fails alone, and its body stays usable', async (t) => {
  const signers = createSigners({ threads: 1, startAt: 1 })
  t.after(() => signers.close())
  await signers.sign(message(1), KEYS, options)
  const bad = { headers: ['From: a\r\nevil'], body: [Buffer.from('x\r\n')] }
  const good = message(3)
  const results = await Promise.allSettled([
    signers.sign(bad, KEYS, options),
    signers.sign(good, KEYS, options),
  ])
  assert.deepEqual(
    results.map(({ status }) => status),
    ['rejected', 'fulfilled'],
  )
  assert.equal(good.body[0]?.toString(), 'Hello  3\r\n')
})

test('after closing, messages are signed without threads', async () => {
  const signers = createSigners({ threads: 1, startAt: 1 })
  await signers.sign(message(1), KEYS, options)
  const signing = Array.from({ length: 20 }, (_, number) => signers.sign(message(number), KEYS, options))
  await signers.close()
  const expected = await Promise.all(signing.map((_, number) => signMessage(message(number), KEYS, options)))
  assert.deepEqual(await Promise.all(signing), expected)
  assert.deepEqual(await signers.sign(message(5), KEYS, options), expected[5])
})
