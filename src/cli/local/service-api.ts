/** The running service for commands that move much: the local one, or one elsewhere with a key from a file. */
import { readFileSync } from 'node:fs'
import { classifyAddress } from '../../base/net/ip.ts'
import {
  type ApiClient,
  type ApiClientOptions,
  ApiUnavailable,
  createApiClient,
} from '../../carry/import/api-client.ts'
import { localKeySecret } from '../../people/keys/api-keys.ts'
import { readConfig } from '../../platform/config/config.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import { readSecret } from '../../platform/store/secrets/secret-file.ts'
import { CommandError } from '../usage.ts'
import { LOCAL_BASE, localFetch } from './local-fetch.ts'

/** Options that `import` and `export` share. */
interface ServiceOptions {
  /** Its base URL; undefined: the service on this machine. */
  service?: string | undefined
  'key-file'?: string | undefined
  /** Keys may go to other machines over http. */
  'allow-http'?: boolean | undefined
}

/** @throws CommandError without a key, or without a local service to ask */
export function serviceApi(
  options: ServiceOptions,
  onWait: (reason: string, waitMs: number) => void,
): ApiClient {
  const { service: url, 'key-file': keyFile } = options
  if (url !== undefined) {
    if (keyFile === undefined)
      throw new CommandError('--service needs --key-file with an API key of that service', 2)
    return foreignApi({ url, key: keyIn(keyFile), onWait }, options)
  }
  const config = readConfig(process.env)
  const secret = readSecret(config.secret, config.dataFolder)
  if (secret === null)
    throw new CommandError('There is no service on this machine; name one with --service and --key-file', 2)
  const key = keyFile === undefined ? localKeySecret(createSealer(secret)) : keyIn(keyFile)
  return createApiClient({ url: LOCAL_BASE, fetch: localFetch(config), key, onWait })
}

/**
 * An API that is named by its URL. Its key goes over http only within the machine, unless the caller allows it (decision 135).
 * @throws CommandError also for a URL that no API can have
 */
export function foreignApi(
  options: ApiClientOptions,
  { 'allow-http': allowHttp }: ServiceOptions,
): ApiClient {
  try {
    const client = createApiClient(options)
    if (!allowHttp && isExposed(new URL(client.origin)))
      throw new CommandError(
        `The key would go to ${client.origin} unencrypted: use https, or --allow-http in a network that nobody else can read`,
        2,
      )
    return client
  } catch (error) {
    if (error instanceof ApiUnavailable) throw new CommandError(error.message, 2)
    throw error
  }
}

/** Names below `localhost` are asked of DNS on many machines, so they may lead anywhere. */
const isExposed = ({ protocol, hostname }: URL): boolean =>
  protocol === 'http:' &&
  hostname !== 'localhost' &&
  classifyAddress(hostname.replace(/^\[(.*)\]$/, '$1')) !== 'loopback'

/** The key in a file: in an argument, other users of the machine would see it. @throws CommandError */
export function keyIn(file: string): string {
  try {
    const key = readFileSync(file, 'utf8').trim()
    if (/^[\x21-\x7e]{1,512}$/.test(key)) return key
  } catch (error) {
    throw new CommandError(`Cannot read the key: ${(error as Error).message}`, 2)
  }
  throw new CommandError(`${file} does not hold an API key`, 2)
}
