/**
 * Accounts that share a service and an organization's names, as an attacker would like to have them: with verified domains that
 * receivers take for one organization with those of others.
 */
import assert from 'node:assert/strict'
import { Resolver } from 'node:dns/promises'
import type { TestContext } from 'node:test'
import type { Core } from '../../src/core.ts'
import type { TextRecords } from './dmarc-receiver.ts'
import { createInternet, type Internet } from './internet.ts'
import type { TestService } from './service.ts'
import type { Sink } from './smtp-sink.ts'
import { type Call, callAs, createSubaccount, startOpened } from './subaccounts.ts'

export const SPF_HOST = 'spf.service.example'
export const PASSWORD = 'correct-horse'

export interface Account {
  id: string
  /** With a key of its own. */
  call: Call
}

export interface Scene {
  internet: Internet
  service: TestService
  core: Core
  sink: Sink
  txt: TextRecords
  /** The parent account. */
  platform: Call
  victim: Account
  attacker: Account
  /** Publishes the records of a new domain, and verifies it. `as`: who claims it. */
  verified(as: Call, name: string, form?: Record<string, string>): Promise<void>
}

/** Mail to `sink.example` comes to the sink. */
export async function startScene(
  t: TestContext,
  database: 'sqlite' | 'postgres' = 'sqlite',
  env: Record<string, string> = {},
): Promise<Scene> {
  const internet = await createInternet(t)
  const { dns } = internet
  const sink = await internet.site(['sink.example'])
  const { service, core } = await startOpened(
    t,
    {
      ...internet.env,
      SENDWRIGHT_SPF_INCLUDE_HOST: SPF_HOST,
      SENDWRIGHT_MX_HOSTS: 'mxa.service.example',
      SENDWRIGHT_SMTP_PORT: String(internet.port),
      ...env,
    },
    { database },
  )
  dns.set(SPF_HOST, 'TXT', ['v=spf1 ip4:127.0.0.0/8 -all'])
  const resolver = new Resolver()
  resolver.setServers([`${dns.host}:${dns.port}`])
  const account = async (name: string): Promise<Account> => {
    const id = await createSubaccount(service, name)
    const made = await callAs(service, id)('POST', '/v1/keys', { form: { role: 'admin' } })
    assert.equal(made.status, 200, made.text)
    const key = made.body.key.secret as string
    return { id, call: (method, path, options = {}) => service.call(method, path, { ...options, key }) }
  }
  return {
    internet,
    service,
    core,
    sink,
    txt: async (name) => {
      const records = await resolver.resolveTxt(name).catch(() => [])
      return records.map((strings) => strings.join(''))
    },
    platform: service.call,
    victim: await account('victim'),
    attacker: await account('attacker'),
    async verified(as, name, form = {}) {
      const made = await as('POST', '/v4/domains', { form: { name, dkim_key_size: '1024', ...form } })
      assert.equal(made.status, 200, made.text)
      publish(internet, name, made.body.sending_dns_records)
      const { body } = await as('PUT', `/v4/domains/${name}/verify`)
      assert.equal(body.domain.state, 'active', name)
    },
  }
}

interface Shown {
  name: string
  record_type: string
  value: string
}

function publish({ dns }: Internet, name: string, records: readonly Shown[]): void {
  dns.set(name, 'TXT', [`v=spf1 include:${SPF_HOST} -all`])
  dns.set(name, 'MX', [[10, 'mxa.service.example']])
  for (const { name: key, record_type: type, value } of records)
    if (type === 'TXT' && key.includes('_domainkey')) dns.set(key, 'TXT', [value.match(/.{1,250}/g) ?? []])
}
