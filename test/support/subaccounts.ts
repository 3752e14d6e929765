/** Subaccounts for tests of the whole service, with a look into its database. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Core } from '../../src/core.ts'
import { type Answer, type CallOptions, startTestService, type TestService } from './service.ts'

export interface Opened {
  service: TestService
  core: Core
}

/** A service and its core, also after a restart. */
export async function startOpened(
  t: TestContext,
  env: Record<string, string> = {},
  overrides: Parameters<typeof startTestService>[2] = {},
): Promise<Opened> {
  const opened: { core: Core | null } = { core: null }
  const look = (core: Core) => {
    opened.core = core
    return {}
  }
  const service = await startTestService(t, env, { ...overrides, areas: [look, ...(overrides.areas ?? [])] })
  return {
    service,
    get core() {
      assert.ok(opened.core)
      return opened.core
    },
  }
}

export type Call = (method: string, path: string, options?: CallOptions) => Promise<Answer>

export const SUBACCOUNTS = '/v5/accounts/subaccounts'

export async function createSubaccount(service: TestService, name: string): Promise<string> {
  const { status, body, text } = await service.call('POST', SUBACCOUNTS, { form: { name } })
  assert.equal(status, 200, text)
  return body.subaccount.id
}

export const onBehalf = (id: string) => ({ 'x-service-on-behalf-of': id })

/** Calls of the service's admin on behalf of a subaccount. */
export const callAs =
  (service: TestService, id: string): Call =>
  (method, path, options = {}) =>
    service.call(method, path, { ...options, headers: { ...options.headers, ...onBehalf(id) } })

export const closeSubaccount = (service: TestService, id: string) =>
  service.call('DELETE', SUBACCOUNTS, { headers: onBehalf(id) })

/** A domain that may send, as after a successful look at its DNS records. */
export async function activeDomain(core: Core, call: Call, name: string): Promise<void> {
  const made = await call('POST', '/v4/domains', { form: { name } })
  assert.equal(made.status, 200, made.text)
  const { id } = made.body.domain
  const { db } = core.store
  await db.updateTable('domains').set({ verified: 1, state: 'active' }).where('id', '=', id).execute()
  core.domains.changed({ id, name })
}

/** A message to alice@example.org. */
export const sendFrom = (call: Call, domain: string, form: NonNullable<CallOptions['form']> = {}) =>
  call('POST', `/v3/${domain}/messages`, {
    form: { from: `a@${domain}`, to: 'alice@example.org', subject: 'Hello', text: 'Hi.', ...form },
  })
