/** Calls the running service as its local administrator. */
import { localKeySecret } from '../../people/keys/api-keys.ts'
import { type Config, readConfig } from '../../platform/config/config.ts'
import { socketFile } from '../../platform/http/listening/local-socket.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import { readSecret, secretFile } from '../../platform/store/secrets/secret-file.ts'
import { CommandError } from '../usage.ts'
import { ForeignSocket, LOCAL_BASE, localFetch } from './local-fetch.ts'

/** No service answers in the data folder. */
export class NotReached extends CommandError {}

/** The service refused; the message has its own words. */
export class Refused extends CommandError {
  readonly status: number
  constructor(message: string, status: number) {
    super(message)
    this.status = status
  }
}

export interface ServiceClient {
  /** @throws Refused, NotReached */
  call(method: string, path: string, form?: FormData): Promise<Record<string, unknown>>
}

/** Where the service listens, for a program on this machine. Anybody may listen there: send no secret. */
export function localUrl({ host, port }: Pick<Config, 'host' | 'port'>): string {
  const local = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host
  return `http://${local}:${port}`
}

export function createClient(env: NodeJS.ProcessEnv = process.env): ServiceClient {
  const config = readConfig(env)
  const secret = readSecret(config.secret, config.dataFolder)
  if (secret === null) {
    const file = secretFile(config.dataFolder)
    throw new CommandError(
      `Cannot call the service: there is no secret in "${file}". The service makes it at its first start; is SENDWRIGHT_DATA the folder it was started with?`,
    )
  }
  const key = localKeySecret(createSealer(secret))
  const fetch = localFetch(config)
  const authorization = `Basic ${Buffer.from(`api:${key}`).toString('base64')}`
  return {
    async call(method, path, form) {
      const response = await fetch(LOCAL_BASE + path, {
        method,
        headers: { authorization },
        ...(form && { body: form }),
      }).catch((error: unknown) => {
        if (error instanceof ForeignSocket) throw new CommandError(error.message)
        throw new NotReached(
          `Cannot reach the service through ${socketFile(config.dataFolder)}: is it running, and is SENDWRIGHT_DATA the folder it was started with? (${(error as Error).message})`,
        )
      })
      const text = await response.text()
      if (!response.ok)
        throw new Refused(`The service answered ${response.status}: ${messageOf(text)}`, response.status)
      return JSON.parse(text) as Record<string, unknown>
    },
  }
}

function messageOf(text: string): string {
  try {
    return String((JSON.parse(text) as { message?: unknown }).message ?? text)
  } catch {
    return text
  }
}
