import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import pino from 'pino'
import { ownAddress } from '../../../../test/support/service.ts'
import { temporaryFolder } from '../../../../test/support/stores.ts'
import { startService } from '../../../service.ts'
import { readConfig } from '../../config/config.ts'

test('a start whose HTTPS port is in use leaves the HTTP port closed', async (t) => {
  const host = ownAddress()
  const other = createServer().listen(8443, host)
  t.after(() => other.close())
  await once(other, 'listening')
  const config = readConfig({
    SENDWRIGHT_HOST: host,
    SENDWRIGHT_PORT: '8080',
    SENDWRIGHT_HTTPS_PORT: '8443',
    SENDWRIGHT_DATA: await temporaryFolder(t),
    SENDWRIGHT_HOSTNAME: 'mail.test.example',
  })
  await assert.rejects(startService(config, pino({ level: 'silent' })), /EADDRINUSE/)
  const next = createServer().listen(8080, host)
  await once(next, 'listening')
  next.close()
})
