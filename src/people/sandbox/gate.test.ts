import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SYSTEM_ACCOUNT_ID } from '../../platform/store/account-rows.ts'
import { parseMailbox } from '../../protocols/mime/address.ts'
import type { Domain } from '../../sending/domains/domain.ts'
import { createSandboxGate } from './gate.ts'

const SANDBOX = { accountId: 'a', type: 'sandbox', name: 'sandbox.test' } as Domain
const DOMAINS: Record<string, Pick<Domain, 'accountId' | 'type' | 'verified'>> = {
  'own.example': { accountId: 'a', type: 'custom', verified: true },
  'unverified.example': { accountId: 'a', type: 'custom', verified: false },
  'sandbox.test': { accountId: 'a', type: 'sandbox', verified: true },
  'others.example': { accountId: 'b', type: 'custom', verified: true },
}

const gate = (mode: 'capture' | 'direct' | 'relay', ...recipients: string[]) =>
  createSandboxGate({
    mode,
    recipients,
    domains: { byName: async (name) => (DOMAINS[name] as Domain | undefined) ?? null },
    haveAgreed: async (accountId, addresses) =>
      accountId === 'a' && addresses.every((address) => address === 'cat@example.org'),
  })

const named = ['ann@example.org', '@team.example']

const CASES: [to: string, direct: boolean][] = [
  ['Ann@Example.org', true],
  ['bob@example.org', false],
  ['anyone@team.example', true],
  ['anyone@sub.team.example', false],
  ['anyone@own.example', true],
  ['anyone@unverified.example', false],
  ['anyone@sandbox.test', true],
  ['anyone@others.example', false],
  ['anyone@own.example, ann@example.org', true],
  ['anyone@own.example, bob@example.org', false],
  ['Cat@example.org, anyone@own.example', true],
  ['cat@example.org, bob@example.org', false],
]

for (const [to, direct] of CASES) {
  test(`a sandbox domain ${direct ? 'may' : 'may not'} send to ${to} in direct mode`, async () => {
    const recipients = to.split(', ').map(parseMailbox)
    assert.equal(await gate('direct', ...named).mayReceive(SANDBOX, recipients), direct)
    assert.equal(await gate('capture').mayReceive(SANDBOX, recipients), true)
    assert.equal(await gate('relay').mayReceive(SANDBOX, recipients), true)
    assert.equal(await gate('direct', '*').mayReceive(SANDBOX, recipients), true)
  })
}

test('mail of the service itself may go to anyone, as it asks people whether they agree', () => {
  const system = { ...SANDBOX, accountId: SYSTEM_ACCOUNT_ID }
  assert.equal(gate('direct').mayReceive(system, [parseMailbox('bob@example.org')]), true)
})
