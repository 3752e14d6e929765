/** Calls the running service: the one on this machine as its administrator, or another one with a key from a file. */

import { existsSync } from 'node:fs'
import { jsonObject } from '../../base/values.ts'
import { localKeySecret } from '../../people/keys/api-keys.ts'
import { type Config, readConfig } from '../../platform/config/config.ts'
import { socketFile } from '../../platform/http/listening/local-socket.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import { readSecret, secretFile } from '../../platform/store/secrets/secret-file.ts'
import { CommandError } from '../usage.ts'
import { ForeignSocket, LOCAL_BASE, localFetch } from './local-fetch.ts'
import { keyIn, remoteService, type ServiceOptions } from './service-api.ts'

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

export type ServiceClient = ReturnType<typeof createClient>

/** A server-sent event; its data are JSON in one line. */
export interface ReceivedEvent {
  /** '': it has none. */
  id: string
  data: Record<string, unknown>
}

/** Where the service listens, for a program on this machine. Anybody may listen there: send no secret. */
export function localUrl({ host, port }: Pick<Config, 'host' | 'port'>): string {
  const local = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host
  return `http://${local}:${port}`
}

/** @param options default: the service on this machine, as its administrator */
export function createClient(env: NodeJS.ProcessEnv = process.env, options: ServiceOptions = {}) {
  const { base, fetch, authorization } = targetFor(env, options)

  async function opened(path: string, init: RequestInit): Promise<Response> {
    const response = await fetch(base + path, init)
    if (response.ok) return response
    const text = await response.text()
    throw new Refused(`The service answered ${response.status}: ${messageOf(text)}`, response.status)
  }
  const answer = async (path: string, init: RequestInit) => (await opened(path, init)).text()

  return {
    /**
     * @param body a form, or a value that is sent as JSON
     * @throws Refused, NotReached
     */
    async call(method: string, path: string, body?: FormData | object): Promise<Record<string, unknown>> {
      const isForm = body === undefined || body instanceof FormData
      const headers = { authorization, ...(!isForm && { 'content-type': 'application/json' }) }
      const sent = isForm ? body : JSON.stringify(body)
      const text = await answer(path, { method, headers, ...(sent !== undefined && { body: sent }) })
      return JSON.parse(text) as Record<string, unknown>
    },
    /** An answer that is not JSON. @throws Refused, NotReached */
    text: (path: string, accept: string): Promise<string> =>
      answer(path, { headers: { authorization, accept } }),
    /**
     * Resolves once the stream of server-sent events is open; it throws when it breaks, and ends when the service ends it.
     * @param lastId of the event that it goes on after; '': it begins now
     * @throws Refused, NotReached
     */
    async stream(path: string, lastId: string): Promise<AsyncGenerator<ReceivedEvent>> {
      const headers = { authorization, accept: 'text/event-stream', 'last-event-id': lastId }
      return eventsIn(await opened(path, { headers }))
    },
  }
}

/** What the service on this machine answers; null where none runs. @throws Refused */
export async function askIfRunning<T>(
  { secret, dataFolder }: Pick<Config, 'secret' | 'dataFolder'>,
  ask: (client: ServiceClient) => Promise<T>,
  env?: NodeJS.ProcessEnv,
): Promise<T | null> {
  // The first start makes the secret that the client signs in with.
  if (secret === null && !existsSync(secretFile(dataFolder))) return null
  try {
    return await ask(createClient(env))
  } catch (error) {
    if (error instanceof NotReached) return null
    throw error
  }
}

/** What our own service writes: each field on one line, LF at its end. What is incomplete is left out. */
async function* eventsIn({ body }: Response): AsyncGenerator<ReceivedEvent> {
  let text = ''
  for await (const chunk of (body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
    text += chunk
    const frames = text.split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(frame)?.[1]
      const data = field('data')
      if (data !== undefined) yield { id: field('id') ?? '', data: JSON.parse(data) }
    }
  }
}

/** A service, and what to call it with. */
export type Target = ReturnType<typeof targetFor>

/** @throws CommandError */
export function targetFor(env: NodeJS.ProcessEnv, options: ServiceOptions) {
  const { base, fetch, key, hint } = options.service === undefined ? local(env, options) : remote(options)
  return {
    base,
    /** @throws NotReached */
    fetch: (url: string, init?: RequestInit): Promise<Response> =>
      fetch(url, init).catch((error: Error) => {
        if (error instanceof ForeignSocket) throw new CommandError(error.message)
        throw new NotReached(`${hint} (${(error.cause as Error | undefined)?.message ?? error.message})`)
      }),
    /** Field with the key. */
    authorization: `Basic ${Buffer.from(`api:${key}`).toString('base64')}`,
  }
}

interface Service {
  base: string
  fetch(url: string, init?: RequestInit): Promise<Response>
  key: string
  /** What to look at when nothing answers. */
  hint: string
}

/** @throws CommandError */
function local(env: NodeJS.ProcessEnv, { 'key-file': keyFile }: ServiceOptions): Service {
  const config = readConfig(env)
  const secret = readSecret(config.secret, config.dataFolder)
  if (secret === null) {
    const file = secretFile(config.dataFolder)
    throw new CommandError(
      `Cannot call the service: there is no secret in "${file}". The service makes it at its first start; is SENDWRIGHT_DATA the folder it was started with?`,
    )
  }
  return {
    base: LOCAL_BASE,
    fetch: localFetch(config),
    key: keyFile === undefined ? localKeySecret(createSealer(secret)) : keyIn(keyFile),
    hint: `Cannot reach the service through ${socketFile(config.dataFolder)}: is it running, and is SENDWRIGHT_DATA the folder it was started with?`,
  }
}

/** @throws CommandError */
function remote(options: ServiceOptions): Service {
  const { url, key } = remoteService(options)
  const base = url.origin + url.pathname.replace(/\/+$/, '')
  return { base, fetch: noRedirects, key, hint: `Cannot reach the service at ${base}` }
}

/** The key goes nowhere else. */
const noRedirects = (url: string, init?: RequestInit) => globalThis.fetch(url, { ...init, redirect: 'error' })

const messageOf = (text: string): string => String(jsonObject(text)?.['message'] ?? text)
