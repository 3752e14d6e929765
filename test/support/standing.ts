/** Subaccounts that send good and bad mail through processes of the service, to a sink that knows no `gone…` mailbox. */
import type { TestContext } from 'node:test'
import { call } from './nodes.ts'
import type { ServiceProcess } from './service-process.ts'
import { createSink, type Sink } from './smtp-sink.ts'
import { onBehalf } from './subaccounts.ts'

export async function pickySink(t: Pick<TestContext, 'after'>): Promise<Sink> {
  const sink = await createSink()
  t.after(() => sink.close())
  sink.on('RCPT TO', (_session, event) =>
    event.includes('gone') ? '550 5.1.1 No such user here' : '250 2.1.5 Ok',
  )
  return sink
}

export interface Standing {
  state: string
  figures: { sent: number; bounced: number }
  stopped: { reason: string; messages_per_minute?: number }[]
}

export interface Sender {
  id: string
  domain: string
  /** `isBad`: to a mailbox that does not exist. */
  send(by: ServiceProcess, isBad: boolean): Promise<void>
  standing(by: ServiceProcess): Promise<Standing>
  /** Messages that were accepted, and that have arrived. */
  accepted(): number
  arrived(): number
}

/** `verify`: makes its domain one that may send. */
export async function newSender(
  service: ServiceProcess,
  sink: Sink,
  name: string,
  verify: (domain: string) => Promise<unknown>,
): Promise<Sender> {
  const made = await call(service, 'POST', '/v5/accounts/subaccounts', { name })
  const { id } = made['subaccount'] as { id: string }
  const domain = `${name}.example`
  await call(service, 'POST', '/v4/domains', { name: domain }, undefined, onBehalf(id))
  await verify(domain)
  let sent = 0
  let accepted = 0
  return {
    ...{ id, domain },
    async send(by, isBad) {
      const to = `${isBad ? 'gone' : 'user'}${sent++}@example.org`
      const fields = { from: `a@${domain}`, to, subject: `${domain} ${sent}`, text: 'Hi.' }
      await call(by, 'POST', `/v3/${domain}/messages`, fields, undefined, onBehalf(id))
      accepted++
    },
    standing: async (by) =>
      (await call(by, 'GET', `/sendwright/v1/accounts/${id}/standing`)) as unknown as Standing,
    accepted: () => accepted,
    arrived: () => sink.messages.filter(({ envelope }) => envelope.from.endsWith(`@${domain}`)).length,
  }
}
