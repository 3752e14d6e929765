/** A token server of real HTTP, and a relay that takes its tokens. */
import type { TestContext } from 'node:test'
import { createReceiver } from './http-receiver.ts'
import type { Sink } from './smtp-sink.ts'

/** Life of each access token. */
export const LIFE_SECONDS = 3_600

export type TokenServer = Awaited<ReturnType<typeof startTokenServer>>

/** Gives `access-1`, `access-2`, ... With `rotates`, each answer has a new refresh token, and the one before counts no more. */
export async function startTokenServer(t: Pick<TestContext, 'after'>, { rotates = false } = {}) {
  const receiver = await createReceiver()
  t.after(() => receiver.close())
  const server = {
    url: `${receiver.url}/token`,
    /** Refresh tokens that were sent. */
    used: [] as (string | null)[],
    /** The refresh token that counts, if they rotate. */
    valid: 'refresh-0',
    /** A used refresh token counts too. */
    isLenient: false,
    /** The response in place of a token. */
    fault: null as { status: number; body?: unknown; headers?: Record<string, string> } | null,
    /** Responses wait for it. */
    gate: Promise.resolve(),
  }
  receiver.answer = async (response, { raw }) => {
    const used = new URLSearchParams(raw.toString()).get('refresh_token')
    server.used.push(used)
    const number = server.used.length
    await server.gate
    const isReused = rotates && !server.isLenient && used !== server.valid
    const wrong = isReused ? { status: 400, body: { error: 'invalid_grant' } } : server.fault
    if (wrong) {
      response.writeHead(wrong.status, wrong.headers).end(JSON.stringify(wrong.body ?? {}))
      return
    }
    if (rotates) server.valid = `refresh-${number}`
    const tokens = { access_token: `access-${number}`, token_type: 'Bearer', expires_in: LIFE_SECONDS }
    response.end(JSON.stringify(rotates ? { ...tokens, refresh_token: server.valid } : tokens))
  }
  return server
}

/** The sink takes a login by XOAUTH2 with a token that `isValid`, as Google's and Microsoft's servers do. */
export function demandTokens(sink: Sink, isValid: (token: string) => boolean): { refused: string[] } {
  const refused: string[] = []
  const isOpen = new Set<number>()
  sink.on('EHLO', '250-sink.test\r\n250 AUTH XOAUTH2')
  sink.on('AUTH XOAUTH2', (session, line) => {
    const text = Buffer.from(line.split(' ')[2] ?? '', 'base64').toString()
    const token = /^user=app@example\.com\x01auth=Bearer (\S+)\x01\x01$/.exec(text)?.[1] ?? ''
    if (isValid(token)) {
      isOpen.add(session.connection)
      return '235 2.7.0 Accepted'
    }
    refused.push(token)
    return `334 ${Buffer.from('{"status":"401","schemes":"bearer"}').toString('base64')}`
  })
  sink.on('MAIL', ({ connection }) =>
    isOpen.has(connection) ? '250 2.1.0 Ok' : '530 5.7.57 Client not authenticated',
  )
  return { refused }
}

/** A login at `demandTokens` for the body of a relay. */
export const tokenLogin = (server: Pick<TokenServer, 'url'>) => ({
  mechanism: 'xoauth2',
  username: 'app@example.com',
  oauth: {
    ...{ token_url: server.url, client_id: 'client', client_secret: 'planted-client-secret' },
    ...{ grant: 'refresh_token', refresh_token: 'refresh-0' },
  },
})
