/** The service that a command calls, and a patient client of it for commands that move much. */
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
import { CommandError, secretIn } from '../usage.ts'
import { LOCAL_BASE, localFetch } from './local-fetch.ts'

/** Options of all commands that can call a service elsewhere. */
export interface ServiceOptions {
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
  const { service, 'key-file': keyFile } = options
  if (service !== undefined) {
    const { url, key } = remoteService(options)
    return foreignApi({ url: url.href, key, onWait }, options)
  }
  const config = readConfig(process.env)
  const secret = readSecret(config.secret, config.dataFolder)
  if (secret === null)
    throw new CommandError('There is no service on this machine; name one with --service and --key-file', 2)
  const key = keyFile === undefined ? localKeySecret(createSealer(secret)) : keyIn(keyFile)
  return createApiClient({ url: LOCAL_BASE, fetch: localFetch(config), key, onWait })
}

/** The service that options name, and the key for it. @throws CommandError */
export function remoteService(options: ServiceOptions): { url: URL; key: string } {
  const { service = '', 'key-file': keyFile } = options
  if (keyFile === undefined)
    throw new CommandError('--service needs --key-file with an API key of that service', 2)
  const url = URL.canParse(service) ? new URL(service) : null
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '')
    throw new CommandError(`Not a base URL: "${service}"; expected http(s)://host`, 2)
  checkExposure(url, options)
  return { url, key: keyIn(keyFile) }
}

/** @throws CommandError where a key would go to another machine unencrypted (decision 135) */
function checkExposure(url: URL, { 'allow-http': allowHttp }: ServiceOptions): void {
  if (!allowHttp && isExposed(url))
    throw new CommandError(
      `The key would go to ${url.origin} unencrypted: use https, or --allow-http in a network that nobody else can read`,
      2,
    )
}

/**
 * An API that is named by its URL. Its key goes over http only within the machine, unless the caller allows it.
 * @throws CommandError also for a URL that no API can have
 */
export function foreignApi(options: ApiClientOptions, allowed: ServiceOptions): ApiClient {
  try {
    const client = createApiClient(options)
    checkExposure(new URL(client.origin), allowed)
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

/** The key in a file. @throws CommandError */
export function keyIn(file: string): string {
  const key = secretIn(file, 'the key', 2)
  if (/^[\x21-\x7e]{1,512}$/.test(key)) return key
  throw new CommandError(`${file} does not hold an API key`, 2)
}
