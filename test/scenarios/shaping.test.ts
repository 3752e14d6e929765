/** The file of limits per provider: changed, spoiled and mended while the service sends. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { commandEnvironment } from '../support/command.ts'
import { createInternet } from '../support/internet.ts'
import { MAIN } from '../support/program.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import { startProcess } from '../support/service-process.ts'
import { temporaryFolder } from '../support/stores.ts'

const PATH = '/sendwright/v1/shaping'
const DOMAIN = 'one.example'
const LANE = 'any/acme'
const run = promisify(execFile)

const shape = (version: string, limits: object, more: object = {}) =>
  JSON.stringify({ version, providers: [{ site: 'acme', mx: [`mx.${DOMAIN}`], ...limits }], ...more })

let writes = 0

/** With another time of change, however coarse the clock of the file system is. */
async function write(file: string, text: string): Promise<void> {
  await writeFile(file, text)
  writes += 1
  await utimes(file, writes, writes)
}

interface Shaping {
  version: string
  faults: string[]
  default: { connections: number }
  providers: { site: string; connections: number; messages_per_second: number | null }[]
}

const shapingOf = async (service: TestService) => (await service.call('GET', PATH)).body as Shaping

async function laneOf(service: TestService) {
  const { items } = (await service.call('GET', '/sendwright/v1/queue/lanes')).body as {
    items: { lane: string; limits: object; set_limits: object }[]
  }
  return items.find(({ lane }) => lane === LANE)
}

test('limits change with the file, a bad file changes nothing, also over a restart', async (t) => {
  const internet = await createInternet(t)
  const sink = await internet.site([DOMAIN])
  const file = join(await temporaryFolder(t), 'shaping.json')
  await write(file, shape('one', { connections: 2, messages_per_connection: 3 }))
  const service = await startTestService(t, { ...internet.env, SENDWRIGHT_SHAPING: file })
  assert.match((await shapingOf(service)).version, /\+one$/)

  const held = Array.from({ length: 5 }, () => sink.hold('DATA-DOT'))
  const to = Array.from({ length: 20 }, (_, index) => `user${index}@${DOMAIN}`)
  await service.send({ to })
  await eventually('two connections', async () => sink.connections.open === 2)
  const lane = await laneOf(service)
  assert.deepEqual(lane?.set_limits, {
    connections: 2,
    messages_per_connection: 3,
    messages_per_second: null,
  })
  assert.equal(sink.connections.peak, 2)

  await t.test('the lane has more connections at once, while the others are in use', async () => {
    await write(file, shape('two', { connections: 5, rate: '6000/1m' }))
    await service.service.reload()
    await eventually('all held', async () => sink.connections.open === 5)
    await Promise.all(held.map(({ reached }) => reached))
    assert.deepEqual((await laneOf(service))?.limits, {
      connections: 5,
      messages_per_connection: 100,
      messages_per_second: 100,
    })
    for (const { release } of held) release()
    await sink.waitFor(to.length)
  })

  await t.test('a file with faults is reported, and what was in force stays', async () => {
    await write(file, `${shape('three', { connections: 9 })} and more`)
    await service.service.reload()
    const spoiled = await shapingOf(service)
    assert.match(spoiled.version, /\+two$/)
    assert.match(spoiled.faults[0] ?? '', /^line 1: /)
    await service.restart()
    const restarted = await shapingOf(service)
    assert.deepEqual([restarted.version, restarted.faults], [spoiled.version, spoiled.faults])
    await service.send({ to: `later@${DOMAIN}` })
    await sink.waitFor(to.length + 1)
  })

  await t.test('the job finds a change by itself', async () => {
    await write(file, shape('four', { connections: 7 }, { default: { connections: 1 } }))
    const found = await eventually('read again', async () => {
      const shaping = await shapingOf(service)
      return shaping.version.endsWith('+four') ? shaping : null
    })
    assert.deepEqual(found.faults, [])
    assert.equal(found.default.connections, 1)
    const acme = found.providers.find(({ site }) => site === 'acme')
    assert.deepEqual([acme?.connections, acme?.messages_per_second], [7, null])
  })
})

test('the command checks a file, and shows what the service has in force; SIGHUP reads it again', async (t) => {
  const folder = await temporaryFolder(t)
  const file = join(folder, 'shaping.json')
  await write(file, '{\n"version": "bad",\n"default": {"connections": "ten"}}')
  const host = ownAddress()
  const env = { SENDWRIGHT_DATA: join(folder, 'data'), SENDWRIGHT_SHAPING: file, SENDWRIGHT_HOST: host }
  const command = async (...args: string[]) => {
    const options = { env: { ...commandEnvironment(), ...env } }
    return run(process.execPath, [MAIN, 'shaping', ...args], options).then(
      ({ stdout }) => ({ code: 0, text: stdout }),
      (error: { code: number; stderr: string }) => ({ code: error.code, text: error.stderr }),
    )
  }
  const spoiled = await command('check', file)
  assert.equal(spoiled.code, 1)
  assert.match(spoiled.text, /^ {2}line 3: default\.connections: must be a whole number from 1 to 1000$/m)
  assert.equal((await command('chekc')).code, 2)
  assert.match((await command('check', join(folder, 'none.json'))).text, /ENOENT/)

  const service = await startProcess(host, env)
  t.after(() => service.end('SIGKILL'))
  assert.match((await command('check')).text, /The file has changed since, and has faults:\n {2}line 3/)
  await write(file, shape('good', { connections: 4, rate: '30/1m' }))
  service.child.kill('SIGHUP')
  const shown = await eventually('in force', async () => {
    const { code, text } = await command('check')
    return code === 0 && text.includes('+good') ? text : null
  })
  assert.match(shown, /^ {2}acme +4 +100 +0\.5 {3}mx\.one\.example$/m)
  assert.match((await command('check', file)).text, /has no fault\./)
})
