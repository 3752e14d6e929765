import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorWords, lagWords } from './text.ts'

test('errors of sinks begin with what they mean, and unknown ones stay as they are', () => {
  const cases = [
    ['connect ECONNREFUSED 192.0.2.1:5672', 'Nothing listens there.'],
    ['getaddrinfo ENOTFOUND broker.example.com', 'The name has no address.'],
    ['401 Unauthorized', 'It does not accept the secret.'],
    ['503 Service Unavailable busy', 'It has failed itself.'],
    ['no queue is bound to mail for opened', 'No queue of the broker wants these events.'],
  ] as const
  for (const [error, meaning] of cases) assert.equal(errorWords(error), `${meaning} (${error})`)
  assert.equal(errorWords('something else'), 'something else')
})

test('a lag has one unit', () => {
  const cases = { 0: 'nothing', 90: '90 s', 5400: '90 min', 86400: '24 h', 260000: '3 d' }
  for (const [seconds, words] of Object.entries(cases)) assert.equal(lagWords(Number(seconds)), words)
})
