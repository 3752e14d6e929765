/** The machine description of a service with nothing in it. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { readConfig } from '../src/platform/config/config.ts'
import { startService } from '../src/service.ts'

/** What `/openapi.json` of a fresh service on embedded storage says. */
export async function describeService<T>(): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'sendwright-description-'))
  const settings = { SENDWRIGHT_HOST: '127.0.0.1', SENDWRIGHT_PORT: '0', SENDWRIGHT_SMTP_PORT: '0' }
  const service = await startService(
    readConfig({ ...settings, SENDWRIGHT_DATA: folder, SENDWRIGHT_API_KEY: 'description-0123456789' }),
    pino({ level: 'silent' }),
  )
  try {
    const answer = await fetch(`http://127.0.0.1:${service.port}/openapi.json`)
    return (await answer.json()) as T
  } finally {
    await service.stop()
    await rm(folder, { recursive: true, force: true })
  }
}
