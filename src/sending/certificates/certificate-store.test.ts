import assert from 'node:assert/strict'
import { eachStore } from '../../../test/support/stores.ts'
import type { CertificateRow } from '../../platform/store/schema.ts'
import { createSealer } from '../../platform/store/secrets/sealing.ts'
import { createAcmeAccounts } from './acme-account.ts'
import { createCertificateStore } from './certificate-store.ts'

const NOW = Date.UTC(2026, 10, 21)
const sealer = createSealer('a secret for tests only, 32 long')
const HOST = { host: 'email.example.com', accountId: 'a', domainId: 'd', now: NOW }

eachStore('an order is claimed by one node, and only that node can end it', async (store) => {
  const certificates = createCertificateStore(store, sealer)
  assert.equal(await certificates.add(HOST), true)
  assert.equal(await certificates.add(HOST), false)
  const [row] = (await certificates.due(NOW, 10, [])) as [CertificateRow]
  const taken = (claim: string, now: number, claimMs: number) => ({ claim, now, claimMs, orders: [NOW] })
  const claims = await Promise.all(
    ['one', 'two'].map((claim) => certificates.claim(row, taken(claim, NOW, 1000))),
  )
  assert.deepEqual(claims.sort(), [false, true])
  const claim = (await certificates.find(HOST.host))?.claim as string
  assert.deepEqual(await certificates.due(NOW, 10, []), [], 'nobody else is offered it')

  // Its process died: after the claim's end another one takes over, and the first is too late.
  const [again] = (await certificates.due(NOW + 1000, 10, [])) as [CertificateRow]
  assert.equal(await certificates.claim(again, taken('three', NOW + 1000, 4000)), true)
  assert.equal(await certificates.settle(HOST.host, claim, { error: 'too late' }), false)
  assert.equal(await certificates.settle(HOST.host, 'three', { error: 'no', requested: 0 }), true)
  assert.equal((await certificates.find(HOST.host))?.error, 'no')
  assert.equal(await certificates.request(HOST.host, NOW), true)
  assert.equal(await certificates.request(HOST.host, NOW), false)
})

eachStore('keys are sealed, and a removed domain leaves neither keys nor challenges', async (store) => {
  const certificates = createCertificateStore(store, sealer)
  await certificates.add(HOST)
  const [row] = (await certificates.due(NOW, 10, [])) as [CertificateRow]
  await certificates.claim(row, { claim: 'c', now: NOW, claimMs: 1000, orders: [] })
  const key_sealed = certificates.sealKey('the private key')
  await certificates.settle(HOST.host, 'c', { chain: 'PEM', key_sealed, expires_at: NOW, issued_at: NOW })
  const stored = (await certificates.find(HOST.host))?.key_sealed as Uint8Array
  assert.equal(Buffer.from(stored).includes('private'), false)
  assert.deepEqual(await certificates.pair(HOST.host), { chain: 'PEM', key: 'the private key' })

  const challenge = { token: 't', host: HOST.host, answer: 'yes', endsAt: NOW + 1000 }
  await certificates.publish(challenge)
  await certificates.publish({ ...challenge, answer: 'yes again' })
  assert.equal(await certificates.answerTo('t', NOW), 'yes again')
  assert.equal(await certificates.answerTo('t', NOW + 1000), null, 'it has an end')
  assert.deepEqual(await certificates.removeDomain('d'), [HOST.host])
  assert.equal(await certificates.answerTo('t', NOW), null)
  assert.equal(await certificates.find(HOST.host), null)
})

eachStore("nodes share one account with an authority, whoever's key was first", async (store) => {
  const nodes = [1, 2].map(() => createAcmeAccounts(store, sealer, 'owner@example.com'))
  const [first, second] = await Promise.all(nodes.map((node) => node.get('https://acme.example/')))
  assert.equal(first?.key, second?.key)
  assert.deepEqual(
    [first?.url, first?.contact, first?.contactChanged],
    [null, ['mailto:owner@example.com'], true],
  )
  await nodes[0]?.registered('https://acme.example/', 'https://acme.example/1')
  const known = await nodes[1]?.get('https://acme.example/')
  assert.deepEqual([known?.url, known?.contactChanged], ['https://acme.example/1', false])
  await nodes[1]?.forgotten('https://acme.example/')
  assert.equal((await nodes[0]?.get('https://acme.example/'))?.url, null)
})
