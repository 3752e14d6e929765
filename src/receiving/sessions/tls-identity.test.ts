import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { readFile, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import pino from 'pino'
import { createAuthority } from '../../../test/support/certificates.ts'
import { createTestClock } from '../../../test/support/clock.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { createTlsIdentity, type TlsIdentityOptions } from './tls-identity.ts'

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000

const optionsFor = (dataFolder: string, hostname = 'smtp.example.com'): TlsIdentityOptions => ({
  files: null,
  dataFolder,
  hostname,
  minVersion: 'TLSv1.2',
  clock: createTestClock(),
  log: pino({ level: 'silent' }),
})

const ownFile = (folder: string) => readFile(join(folder, 'tls/smtp.crt'), 'utf8')

test('without files a certificate for the host name is made once and kept, its key readable by the owner only', async (t) => {
  const folder = await temporaryFolder(t)
  createTlsIdentity(optionsFor(folder))
  const made = await ownFile(folder)
  assert.equal(new X509Certificate(made).checkHost('smtp.example.com'), 'smtp.example.com')
  assert.equal((await stat(join(folder, 'tls/smtp.key'))).mode & 0o777, 0o600)
  createTlsIdentity(optionsFor(folder))
  assert.equal(await ownFile(folder), made)
})

test('it is replaced for another name, before it expires, and when the files are broken', async (t) => {
  const folder = await temporaryFolder(t)
  let last = ''
  const renewed = async (options: TlsIdentityOptions) => {
    createTlsIdentity(options)
    const now = await ownFile(folder)
    const changed = now !== last
    last = now
    return changed
  }
  assert.ok(await renewed(optionsFor(folder)))
  assert.ok(await renewed(optionsFor(folder, '192.0.2.1')))
  assert.ok(!(await renewed(optionsFor(folder, '192.0.2.1'))))
  const later = createTestClock(Date.UTC(2036, 4, 1))
  assert.ok(await renewed({ ...optionsFor(folder, '192.0.2.1'), clock: later }))
  await writeFile(join(folder, 'tls/smtp.key'), 'cut sho')
  assert.ok(await renewed({ ...optionsFor(folder, '192.0.2.1'), clock: later }))
})

test("the operator's files are read again when they change; a broken renewal keeps the old ones", async (t) => {
  const folder = await temporaryFolder(t)
  const files = { certificateFile: join(folder, 'a.crt'), keyFile: join(folder, 'a.key') }
  const write = async ({ cert, key }: { cert: string; key: string }, atMs: number) => {
    await writeFile(files.certificateFile, cert)
    await writeFile(files.keyFile, key)
    await utimes(files.certificateFile, atMs / 1000, atMs / 1000)
  }
  const authority = createAuthority()
  await write(authority.issue(['a.example']), DAY_MS)
  const clock = createTestClock()
  const context = createTlsIdentity({ ...optionsFor(folder), files, clock })
  const first = context()
  await write(authority.issue(['b.example']), 2 * DAY_MS)
  assert.equal(context(), first, 'not looked at again at once')
  await clock.advance(HOUR_MS)
  const second = context()
  assert.notEqual(second, first)
  await write({ cert: 'broken', key: 'broken' }, 3 * DAY_MS)
  await clock.advance(HOUR_MS)
  assert.equal(context(), second)
})

test('files that cannot be read, or do not match, fail the start', async (t) => {
  const folder = await temporaryFolder(t)
  const files = { certificateFile: join(folder, 'a.crt'), keyFile: join(folder, 'a.key') }
  assert.throws(() => createTlsIdentity({ ...optionsFor(folder), files }), { code: 'ENOENT' })
  const [one, other] = [createAuthority().issue(['a.example']), createAuthority().issue(['a.example'])]
  await writeFile(files.certificateFile, one.cert)
  await writeFile(files.keyFile, other.key)
  assert.throws(() => createTlsIdentity({ ...optionsFor(folder), files }))
})
