/**
 * Locates an address with a MaxMind DB file of the operator's (tracking.md rule 10), without any network query.
 * Without a file, and for addresses not in it, everything is `Unknown`.
 */

import { readFile, stat } from 'node:fs/promises'
import { type CityResponse, Reader } from 'mmdb-lib'
import type { Logger } from 'pino'
import type { Clock, Timer } from '../../base/time/clock.ts'
import { MINUTE_MS } from '../../base/time/durations.ts'
import type { Geolocation } from '../../watching/events/later-events.ts'

export type Geo = Awaited<ReturnType<typeof openGeo>>

const UNKNOWN = 'Unknown'
export const UNKNOWN_LOCATION: Geolocation = {
  country: UNKNOWN,
  region: UNKNOWN,
  city: UNKNOWN,
  timezone: UNKNOWN,
}

/** Such files are updated once or twice a week. */
const CHECK_EVERY_MS = 10 * MINUTE_MS
/** The largest of the free ones has about 130 MB; the whole file is kept in memory. */
const FILE_BYTES_MAX = 1024 * 1024 * 1024

export const NO_GEO: Geo = { locate: () => UNKNOWN_LOCATION, stop() {} }

/**
 * Reads the file, and again when it is replaced; if the new one cannot be read, the old one stays in use.
 * @throws Error naming the file when the first one cannot be read
 */
export async function openGeo(file: string, clock: Clock, log: Logger) {
  let { reader, version } = await read(file)
  let timer: Timer | null = null
  let stopped = false

  async function reload(): Promise<void> {
    try {
      if ((await versionOf(file)) !== version) ({ reader, version } = await read(file))
    } catch (error) {
      log.warn({ err: error }, 'cannot renew the geo database')
    }
    if (!stopped) arm()
  }
  function arm(): void {
    timer = clock.setTimer(CHECK_EVERY_MS, () => void reload())
  }
  arm()

  return {
    locate(address: string): Geolocation {
      try {
        return locationIn(reader.get(address))
      } catch {
        // Not an address, or a broken pointer in the file.
        return UNKNOWN_LOCATION
      }
    },
    stop(): void {
      stopped = true
      timer?.cancel()
    },
  }
}

function locationIn(found: CityResponse | null): Geolocation {
  return {
    country: textOf(found?.country?.iso_code),
    region: textOf(found?.subdivisions?.[0]?.iso_code),
    city: textOf(found?.city?.names?.en),
    timezone: textOf(found?.location?.time_zone),
  }
}

/** The library's types are unchecked claims about the content of the file. */
const textOf = (value: unknown): string => (typeof value === 'string' && value !== '' ? value : UNKNOWN)

async function versionOf(file: string): Promise<string> {
  const { mtimeMs, size, ino } = await stat(file)
  return `${mtimeMs} ${size} ${ino}`
}

async function read(file: string): Promise<{ reader: Reader<CityResponse>; version: string }> {
  try {
    const version = await versionOf(file)
    if ((await stat(file)).size > FILE_BYTES_MAX) throw new Error(`more than ${FILE_BYTES_MAX} bytes`)
    return { reader: new Reader<CityResponse>(await readFile(file)), version }
  } catch (error) {
    throw new Error(`Cannot read the geo database "${file}": ${(error as Error).message}`, { cause: error })
  }
}
