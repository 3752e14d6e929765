import assert from 'node:assert/strict'
import { utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import pino from 'pino'
import { createTestClock } from '../../../test/support/clock.ts'
import { writeMmdb } from '../../../test/support/mmdb.ts'
import { eventually } from '../../../test/support/service.ts'
import { temporaryFolder } from '../../../test/support/stores.ts'
import { NO_GEO, openGeo, UNKNOWN_LOCATION } from './geo.ts'

const BERLIN = {
  country: { iso_code: 'DE', names: { en: 'Germany' } },
  subdivisions: [{ iso_code: 'BE' }],
  city: { names: { en: 'Berlin', de: 'Berlin' } },
  location: { time_zone: 'Europe/Berlin' },
}
const PLACE = { country: 'DE', region: 'BE', city: 'Berlin', timezone: 'Europe/Berlin' }

async function open(t: TestContext, content: Buffer) {
  const file = join(await temporaryFolder(t), 'places.mmdb')
  await writeFile(file, content)
  const clock = createTestClock()
  const logged: string[] = []
  const log = pino({}, { write: (line) => void logged.push((JSON.parse(line) as { msg: string }).msg) })
  const geo = await openGeo(file, clock, log)
  t.after(() => geo.stop())
  return { geo, clock, file, logged }
}

test('an address is located by the database, IPv4 and IPv6', async (t) => {
  const { geo } = await open(
    t,
    writeMmdb([
      ['192.0.2.0/25', BERLIN],
      ['2001:db8:7::/48', { country: { iso_code: 'NZ' } }],
      ['198.51.100.7/32', { country: { iso_code: '' }, city: {} }],
    ]),
  )
  assert.deepEqual(geo.locate('192.0.2.44'), PLACE)
  assert.deepEqual(geo.locate('2001:db8:7::1'), { ...UNKNOWN_LOCATION, country: 'NZ' })
  for (const address of ['192.0.2.200', '2001:db8:8::1', '198.51.100.7', '127.0.0.1', 'nowhere', '']) {
    assert.deepEqual(geo.locate(address), UNKNOWN_LOCATION, address)
  }
})

test('without a database everything is unknown', () => {
  assert.deepEqual(NO_GEO.locate('192.0.2.44'), UNKNOWN_LOCATION)
})

test('an invalid file is refused by name', async (t) => {
  await assert.rejects(open(t, Buffer.from('hello')), /Cannot read the geo database ".*places\.mmdb"/)
  await assert.rejects(
    openGeo('/nowhere/places.mmdb', createTestClock(), pino({ level: 'silent' })),
    /Cannot read the geo database "\/nowhere\/places\.mmdb": ENOENT/,
  )
})

test('a replaced file is loaded, a broken one is not', async (t) => {
  const { geo, clock, file, logged } = await open(t, writeMmdb([['192.0.2.0/24', BERLIN]]))
  const replace = async (content: Buffer, seconds: number) => {
    await writeFile(file, content)
    await utimes(file, seconds, seconds)
    await clock.advance(10 * 60_000)
  }
  await replace(writeMmdb([['192.0.2.0/24', { country: { iso_code: 'FR' } }]]), 1_800_000_000)
  // The file is read after the timer, by the system's threads.
  await eventually('the new file is in use', async () => geo.locate('192.0.2.44').country === 'FR')
  await replace(Buffer.from('broken'), 1_800_000_100)
  await eventually('the broken one was read', async () => logged.includes('cannot renew the geo database'))
  assert.equal(geo.locate('192.0.2.44').country, 'FR')
})
