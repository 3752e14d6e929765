/** How the command line reaches the service, and what others on the machine get of it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { runCommand } from '../../test/support/command.ts'
import { ownAddress, startTestService } from '../../test/support/service.ts'
import { temporaryFolder } from '../../test/support/stores.ts'
import { localKeySecret } from '../people/keys/api-keys.ts'
import { createSealer } from '../platform/store/secrets/sealing.ts'
import { readSecret } from '../platform/store/secrets/secret-file.ts'
import { isTrusted } from './local/local-fetch.ts'

const keyIn = (folder: string) => localKeySecret(createSealer(readSecret(null, folder) as string))

/** A program that got the service's port first: keeps all that it receives. */
async function createImpostor(t: TestContext, host: string) {
  const sockets: Socket[] = []
  let received = ''
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('data', (bytes) => {
      received += bytes.toString()
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"items":[]}')
    })
  }).listen(8080, host)
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { connections: () => sockets.length, received: () => received }
}

test('commands use the socket in the data folder, and the local key counts nowhere else', async (t) => {
  const { config, url, call, restart } = await startTestService(t)
  const { dataFolder } = config
  const socket = join(dataFolder, 'service.sock')
  // Host and port are not needed.
  const run = (...args: string[]) => runCommand({ SENDWRIGHT_DATA: dataFolder }, ...args)
  const key = keyIn(dataFolder)

  await t.test('a command is answered; only the owner can open the socket', async () => {
    const { code, out, err } = await run('keys', 'list', '--json')
    assert.deepEqual([code, JSON.parse(out).length], [0, 1], err)
    assert.equal(statSync(socket).mode & 0o7777, 0o600)
  })

  await t.test('over TCP the local key is a wrong key, from loopback too', async () => {
    for (const headers of [{}, { 'x-forwarded-for': '127.0.0.1' }])
      assert.equal((await call('GET', '/v1/keys', { key, headers })).status, 401, url)
  })

  await t.test('what a killed service left is replaced; a stop removes it', async () => {
    renameSync(socket, join(dataFolder, 'left.sock'))
    const left = createServer().listen(join(dataFolder, 'other.sock'))
    await once(left, 'listening')
    renameSync(join(dataFolder, 'other.sock'), socket)
    left.close()
    await once(left, 'close')
    assert.ok(existsSync(socket))
    await restart()
    assert.equal((await run('keys', 'list')).code, 0)
    rmSync(join(dataFolder, 'left.sock'))
  })

  await t.test('a link to another socket is not followed', async () => {
    renameSync(socket, join(dataFolder, 'real.sock'))
    symlinkSync('real.sock', socket)
    const { code, err } = await run('keys', 'list')
    assert.equal(code, 1)
    assert.match(err, /is not the service's socket/)
    rmSync(socket)
    renameSync(join(dataFolder, 'real.sock'), socket)
  })
})

test('a path that is too long for a socket is reached through its folder; another file of its name stays', async (t) => {
  const folder = join(await temporaryFolder(t), 'long-'.repeat(20), 'data')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const test = await startTestService(t, { SENDWRIGHT_DATA: folder })
  assert.ok(Buffer.byteLength(join(folder, 'service.sock')) > 108)
  const { code, err } = await runCommand({ SENDWRIGHT_DATA: folder }, 'keys', 'list')
  assert.equal(code, 0, err)

  await test.service.stop()
  writeFileSync(join(folder, 'service.sock'), 'kept')
  await test.restart()
  assert.equal((await test.call('GET', '/v4/domains')).status, 200)
  assert.equal(readFileSync(join(folder, 'service.sock'), 'utf8'), 'kept')
})

test('without a service commands connect to nobody who listens on its port', async (t) => {
  const host = ownAddress()
  const folder = await temporaryFolder(t)
  writeFileSync(join(folder, 'secret'), 'a-secret-that-nobody-should-learn-of\n', { mode: 0o600 })
  const impostor = await createImpostor(t, host)
  const env = {
    SENDWRIGHT_DATA: folder,
    SENDWRIGHT_HOST: host,
    SENDWRIGHT_DNSBL_ZONES: 'off',
    SENDWRIGHT_DNS: `${host}:1`,
  }
  const look = async (args: string[], more: Record<string, string>, says: RegExp) => {
    const { out, err } = await runCommand({ ...env, ...more }, ...args)
    assert.match(out + err, says)
    assert.deepEqual([impostor.connections(), impostor.received()], [0, ''])
  }
  await look(['keys', 'list'], {}, /Cannot reach the service/)
  const setup = [
    'setup',
    '--yes',
    '--host',
    'mail.own.example',
    '--https',
    'off',
    '--admin',
    'boss@own.example',
  ]
  const settings = {
    SENDWRIGHT_ENV_FILE: join(folder, 'settings.env'),
    SENDWRIGHT_SETUP_PASSWORD: 'correct horse battery staple',
  }
  await look(setup, settings, /Admin boss@own\.example: created/)
})

const SOCKET = { isSocket: () => true }
const TRUST: [what: string, owner: number, owners: number[], own: number, trusted: boolean][] = [
  ['of the command’s own user', 7, [0], 7, true],
  ['of root', 0, [9], 7, true],
  ['of the folder’s owner, for root', 9, [9], 0, true],
  ['of the secret’s owner, in a folder of root', 9, [0, 9], 0, true],
  ['of another user', 8, [0, 9], 7, false],
  ['of another user, for root', 8, [0, 9], 0, false],
]
for (const [what, uid, owners, own, trusted] of TRUST)
  test(`a socket ${what} is ${trusted ? '' : 'not '}trusted`, () => {
    const folders = owners.map((one) => ({ uid: one }))
    assert.equal(isTrusted({ ...SOCKET, uid }, folders, own), trusted)
    assert.equal(isTrusted({ isSocket: () => false, uid }, folders, own), false)
  })
