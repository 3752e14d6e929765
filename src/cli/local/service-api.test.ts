import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { run as exportCommand } from '../data/export.ts'
import { run as importCommand } from '../data/import.ts'
import { CommandError } from '../usage.ts'
import { foreignApi, serviceApi } from './service-api.ts'

/** Hosts of URLs, and whether a key may go there over http. */
const HOSTS: [host: string, isHere: boolean][] = [
  ['localhost', true],
  ['127.0.0.1', true],
  ['127.9.8.7:8080', true],
  ['127.1', true],
  ['[::1]:8080', true],
  ['[::ffff:127.0.0.1]', true],
  ['mail.example.com', false],
  ['10.1.2.3', false],
  ['0.0.0.0', false],
  ['[fe80::1]', false],
  // Many resolvers ask DNS for these.
  ['mail.localhost', false],
  ['localhost.example.com', false],
  ['127.0.0.1.example.com', false],
]

for (const [host, isHere] of HOSTS)
  test(`a key may ${isHere ? '' : 'not '}go to http://${host}`, () => {
    const options = { url: `http://${host}`, key: 'key' }
    const refused = { name: 'Error', exitCode: 2, message: /would go to http:.* unencrypted/ }
    if (isHere) assert.ok(foreignApi(options, {}))
    else assert.throws(() => foreignApi(options, {}), refused)
    assert.ok(foreignApi(options, { 'allow-http': true }))
    assert.ok(foreignApi({ ...options, url: `https://${host}` }, {}))
  })

test('import and export refuse http to other machines for both keys, before they call', async (t) => {
  const folder = await temporaryFolder(t)
  const key = join(folder, 'key')
  writeFileSync(key, 'key-of-the-test')
  // An address for documentation: a call would wait for ever.
  const url = 'http://192.0.2.1'
  const service = ['--service', url, '--key-file', key]
  const source = ['mailgun', '--source-key-file', key]
  const refused = (error: unknown) =>
    error instanceof CommandError && error.exitCode === 2 && /unencrypted: use https/.test(error.message)
  await assert.rejects(importCommand([...source, '--source', url]), refused)
  await assert.rejects(importCommand([...source, ...service]), refused)
  await assert.rejects(exportCommand(['--to', join(folder, 'out'), ...service]), refused)
  assert.ok(serviceApi({ service: url, 'key-file': key, 'allow-http': true }, () => {}))
})
