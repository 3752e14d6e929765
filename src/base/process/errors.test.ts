import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CannotListen } from './errors.ts'

test('a port that only root may open: the sentence names the way out', () => {
  const settings = ['SMTP_HOST', 'SMTP_PORT'] as const
  const sentence = (code: string) =>
    new CannotListen('SMTP', settings, Object.assign(new Error(`listen ${code}`), { code })).message
  const begin = 'Cannot listen for SMTP, as SENDWRIGHT_SMTP_HOST and SENDWRIGHT_SMTP_PORT say: listen'
  assert.equal(sentence('EADDRINUSE'), `${begin} EADDRINUSE`)
  assert.equal(
    sentence('EACCES'),
    `${begin} EACCES. Ports below 1024 are for root: set SENDWRIGHT_SMTP_PORT to another, and forward the port to it`,
  )
})
