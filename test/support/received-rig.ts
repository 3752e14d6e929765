/** A service as a process that gets mail for routes, with a probe for blocks of its main thread. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { connectSmtp } from '../../src/protocols/smtp/client.ts'
import { longestBlock } from './block-probe.ts'
import { HANG_MS } from './hang.ts'
import { ownAddress } from './service.ts'
import { AUTHORIZATION, type ServiceProcess, startProcess } from './service-process.ts'
import { temporaryFolder } from './stores.ts'

export const BLOCK_MAX_MS = 200

export interface ReceivedRig {
  host: string
  service: ServiceProcess
  data: string
  /** Starts it again after it was ended. */
  restart(): Promise<void>
  call(
    method: string,
    path: string,
    form?: Record<string, string>,
    headers?: Record<string, string>,
  ): Promise<{ status: number; text: string }>
  route(expression: string, ...actions: string[]): Promise<number>
  /** The code of the reply to a mail: the first recipient's if none was accepted. */
  give(headers: readonly string[], body: Buffer, ...recipients: string[]): Promise<number>
  /** Fails if the main thread is busy for too long while `run` works. */
  measured(what: string, run: () => Promise<void>): Promise<void>
}

export async function startReceivedRig(
  t: TestContext,
  env: Record<string, string> = {},
): Promise<ReceivedRig> {
  const folder = await temporaryFolder(t)
  const [host, probe, data] = [ownAddress(), join(folder, 'probe.json'), join(folder, 'data')]
  const settings = {
    SENDWRIGHT_DATA: data,
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    SENDWRIGHT_SANDBOX_RECIPIENTS: '*',
    SENDWRIGHT_DNS: '127.0.0.1:9',
    ...env,
  }
  const start = () => startProcess(host, settings, { probe })
  const call: ReceivedRig['call'] = async (method, path, form, headers) => {
    const answer = await fetch(rig.service.url + path, {
      method,
      headers: { authorization: AUTHORIZATION, ...headers },
      ...(form && { body: new URLSearchParams(form) }),
      signal: AbortSignal.timeout(HANG_MS),
    })
    return { status: answer.status, text: await answer.text() }
  }
  const rig: ReceivedRig = {
    ...{ host, data, call, service: await start() },
    async restart() {
      rig.service = await start()
    },
    async route(expression, ...actions) {
      const body = new URLSearchParams({ expression })
      for (const action of actions) body.append('action', action)
      const answer = await fetch(`${rig.service.url}/v3/routes`, {
        method: 'POST',
        headers: { authorization: AUTHORIZATION },
        body,
      })
      return answer.status
    },
    async give(headers, body, ...recipients) {
      const connection = await connectSmtp({
        ...{ host, port: 2525, heloName: 'client.example', tls: 'none', verify: false },
      })
      const { data: reply, recipients: replies } = await connection.send({
        returnPath: 'stranger@example.org',
        recipients: recipients.map((local) => `${local}@${rig.service.domain}`),
        message: { headers: ['From: stranger@example.org', ...headers], body: [body] },
        sizeBytes: body.byteLength + 1_000,
        utf8: false,
      })
      await connection.quit()
      return reply?.code ?? replies[0]?.reply.code ?? 0
    },
    async measured(what, run) {
      const pid = rig.service.child.pid as number
      const longestMs = await longestBlock({ pid, probe }, BLOCK_MAX_MS, run)
      t.diagnostic(`${what}: ${Math.round(longestMs)} ms`)
      assert.ok(longestMs < BLOCK_MAX_MS, `${what}: the main thread was busy for ${Math.round(longestMs)} ms`)
    },
  }
  t.after(() => rig.service.end('SIGKILL'))
  return rig
}
