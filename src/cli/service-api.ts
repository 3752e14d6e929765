/** The running service for commands that move much: the local one, or one elsewhere with a key from a file. */
import { readFileSync } from 'node:fs'
import { localKeySecret } from '../accounts/local-key.ts'
import { readConfig } from '../config.ts'
import {
  type ApiClient,
  type ApiClientOptions,
  ApiUnavailable,
  createApiClient,
} from '../moving/api-client.ts'
import { createSealer } from '../store/sealing.ts'
import { readSecret } from '../store/secret-file.ts'
import { LOCAL_BASE, localFetch } from './local-fetch.ts'
import { CommandError } from './usage.ts'

export interface ServiceOptions {
  /** Its base URL; undefined: the service on this machine. */
  service?: string | undefined
  'key-file'?: string | undefined
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
    return apiClient({ url, key: keyIn(keyFile), onWait })
  }
  const config = readConfig(process.env)
  const secret = readSecret(config.secret, config.dataFolder)
  if (secret === null)
    throw new CommandError('There is no service on this machine; name one with --service and --key-file', 2)
  const key = keyFile === undefined ? localKeySecret(createSealer(secret)) : keyIn(keyFile)
  return apiClient({ url: LOCAL_BASE, fetch: localFetch(config), key, onWait })
}

/** @throws CommandError for a URL that no API can have */
export function apiClient(options: ApiClientOptions): ApiClient {
  try {
    return createApiClient(options)
  } catch (error) {
    if (error instanceof ApiUnavailable) throw new CommandError(error.message, 2)
    throw error
  }
}

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
