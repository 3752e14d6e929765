/**
 * Every operation on domains, connections, tracking settings and keys in the service's own API description must
 * name here the tests of its success, its errors and its rules. What all of them share is tested here: 401 without
 * a key, 403 for a read-only key, 404 for a domain that does not exist or belongs to another account. An operation
 * without an entry fails.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, type TestContext, test } from 'node:test'
import { assertTestExists } from '../../../test/support/coverage.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'

const DOMAINS = 'src/sending/domains/domains.test.ts'
const STATES = 'src/sending/domains/dns/verification.test.ts'
const KEYS = 'src/sending/domains/keys/domain-keys.test.ts'
const SECURITY = 'src/sending/domains/keys/sender-security.test.ts'
const SETTINGS = 'src/sending/tracking/settings-routes.test.ts'
const SENDER_RULES = 'src/watching/sender-rules/sender-rules.test.ts'
const REPORTS = 'src/receiving/domain-reports/reports.test.ts'
const POLICIES = 'src/sending/certificates/hosted-policies.test.ts'
const CONSENT = 'test/scenarios/consent.test.ts'
const TOPICS = 'topics behind the unsubscribe link are switched one by one, and by one click'
const CERTIFICATES = 'src/sending/certificates/certificates.test.ts'

type Named = readonly [file: string, name: string]

const REFUSED: Named = [DOMAINS, 'an invalid domain is refused with the texts of the contract']
const UPDATED: Named = [DOMAINS, 'settings given at creation and changed later are shown']
const DEPRECATED: Named = [DOMAINS, 'the three deprecated updates still work, from body or query']
const ACTIVATION: Named = [
  KEYS,
  'activation needs the valid record in DNS; repeating it and deactivating always work',
]
const LISTED: Named = [
  KEYS,
  'the list goes through all authorities in pages, forwards and backwards, and can be filtered',
]
const BAD_TRACKING: Named = [SETTINGS, 'bad values and unknown domains are refused']
const TRACKING: Named = [SETTINGS, 'each setting changes alone, and its new value is returned']
const CERTIFICATE: Named = [
  CERTIFICATES,
  'a certificate is ordered, served by its name, and renewed without a restart',
]
const ROTATION: Named = [SECURITY, 'rotation is switched with an interval of at least five days']
const ROTATED: Named = [SECURITY, 'keys behind two CNAMEs are rotated without a gap']
const CONNECTION: Named = [
  DOMAINS,
  'connection settings have both public shapes, and changing one field leaves the other',
]
const DELETION: Named = [
  DOMAINS,
  'sandbox, authority of another domain and disabled domain cannot be deleted',
]

interface Covered {
  success: Named
  /** Its own errors and state rules; those that all operations share are tested below. */
  errors: readonly Named[]
  /** The answer for an unknown domain; 'none': the path names no domain. */
  unknown: object | 'none'
  /** What the request needs to get to that check. */
  form?: Record<string, string>
}

const NO_DOMAIN = { message: 'Domain not found' }
const NO_KEY = { message: 'domain key not found' }
const NO_CERTIFICATE = { Description: 'x509 cert not found' }
const NO_ROTATION = { Description: 'domain not found' }

const TABLE: Record<string, Covered> = {
  listDomains: {
    success: [DOMAINS, 'lists: search, sort, state, authority, skip and limit over a thousand domains'],
    errors: [[DOMAINS, 'domains of subaccounts are listed on request, with their account']],
    unknown: 'none',
  },
  createDomain: {
    success: [DOMAINS, 'a new domain lists its records and is unverified'],
    errors: [
      REFUSED,
      [KEYS, 'another account cannot sign with this one’s domain, nor take the name it signs with'],
    ],
    unknown: 'none',
  },
  createDomainV3: {
    success: [DOMAINS, 'the v3 paths are the same operations'],
    errors: [REFUSED],
    unknown: 'none',
  },
  readDomain: {
    success: UPDATED,
    errors: [[DOMAINS, 'names that no database or DNS can hold are not found']],
    unknown: NO_DOMAIN,
  },
  updateDomain: {
    success: UPDATED,
    errors: [
      UPDATED,
      [SECURITY, 'when switched on or off the former key signs until the new records are found'],
    ],
    unknown: NO_DOMAIN,
  },
  verifyDomain: {
    success: [STATES, 'all records correct: active, every record valid, every sentence says so'],
    errors: [
      [STATES, '${what}: from ${from}'],
      [DOMAINS, 'verification is limited to ten calls per minute and domain'],
      [DOMAINS, 'a disabled domain neither sends nor can be deleted, and is enabled again at its end time'],
    ],
    unknown: NO_DOMAIN,
  },
  deleteDomain: {
    success: [
      DOMAINS,
      'a deleted domain is gone at once, its name is free when all that belonged to it is removed',
    ],
    errors: [
      DELETION,
      [DOMAINS, 'a disabled domain neither sends nor can be deleted, and is enabled again at its end time'],
    ],
    unknown: NO_DOMAIN,
  },
  readDomainZone: {
    success: [DOMAINS, 'the zone text holds every record, long keys in pieces of 255'],
    errors: [],
    unknown: NO_DOMAIN,
  },
  explainDomainDns: {
    success: [DOMAINS, 'each record is explained: query, server, answer, sentence; with advice about DMARC'],
    errors: [],
    unknown: NO_DOMAIN,
  },
  readSenderRules: {
    success: [SENDER_RULES, 'the rules of a domain over HTTP'],
    errors: [],
    unknown: NO_DOMAIN,
  },
  listDomainReports: {
    success: [REPORTS, 'DMARC and TLS reports are kept, counted once and summed up'],
    errors: [
      [REPORTS, 'reports that prove no sender count in no total, and others domains are out of reach'],
      [REPORTS, 'filters that mean nothing are refused'],
    ],
    unknown: NO_DOMAIN,
  },
  readHostedPolicy: {
    success: [POLICIES, 'a policy is served with a certificate of its own, and its record names the policy'],
    errors: [],
    unknown: NO_DOMAIN,
  },
  readConnection: { success: CONNECTION, errors: [], unknown: NO_DOMAIN },
  updateConnection: { success: CONNECTION, errors: [CONNECTION], unknown: NO_DOMAIN },
  updateMessageTtl: { success: DEPRECATED, errors: [DEPRECATED], unknown: NO_DOMAIN },
  updateMailfromHost: { success: DEPRECATED, errors: [UPDATED], unknown: NO_DOMAIN },
  updateWebPrefix: { success: DEPRECATED, errors: [DEPRECATED], unknown: NO_DOMAIN },
  readTracking: {
    success: [SETTINGS, 'a new domain has everything off and the default footers'],
    errors: [],
    unknown: NO_DOMAIN,
  },
  updateOpenTracking: { success: TRACKING, errors: [BAD_TRACKING], unknown: NO_DOMAIN },
  updateClickTracking: { success: TRACKING, errors: [BAD_TRACKING], unknown: NO_DOMAIN },
  updateUnsubscribeTracking: { success: TRACKING, errors: [BAD_TRACKING], unknown: NO_DOMAIN },
  readTopics: { success: [CONSENT, TOPICS], errors: [], unknown: NO_DOMAIN },
  updateTopics: {
    success: [CONSENT, TOPICS],
    errors: [[CONSENT, 'hostile bodies and settings are refused with a page or a text']],
    unknown: NO_DOMAIN,
  },
  readTrackingCertificate: {
    success: CERTIFICATE,
    errors: [[CERTIFICATES, 'K5: a host that was never requested, and one that is not a tracking host']],
    unknown: 'none',
  },
  requestTrackingCertificate: {
    success: CERTIFICATE,
    errors: [
      [CERTIFICATES, 'K6 without the CNAME record, with a wrong one, and without an answer from DNS'],
      [CERTIFICATES, 'K6 while the order runs, and when there is a certificate'],
      [CERTIFICATES, 'without an authority K6 reports it, and nothing is queried'],
    ],
    unknown: NO_CERTIFICATE,
  },
  renewTrackingCertificate: {
    success: [CERTIFICATES, 'K7 without a certificate, with a valid one, and after it has expired'],
    errors: [[CERTIFICATES, 'K7 without a certificate, with a valid one, and after it has expired']],
    unknown: NO_CERTIFICATE,
  },
  listDomainKeys: { success: LISTED, errors: [LISTED], unknown: 'none' },
  createDomainKey: {
    success: [
      KEYS,
      'a key is created inactive, in every size and algorithm, and its private half is never shown',
    ],
    errors: [
      [KEYS, 'an invalid key is refused with the texts of the contract'],
      [KEYS, 'an RSA key is imported as text or file, unless DNS has another one'],
      [KEYS, 'concurrent changes keep the limit of three keys and the last active one'],
    ],
    unknown: 'none',
  },
  deleteDomainKey: {
    success: [KEYS, 'the only active key cannot be deleted; an inactive one always can'],
    errors: [
      [KEYS, 'concurrent changes keep the limit of three keys and the last active one'],
      [SECURITY, 'managed keys are listed as CNAME and left alone by the other operations'],
    ],
    unknown: 'none',
  },
  listAuthorityKeys: { success: LISTED, errors: [], unknown: NO_DOMAIN },
  activateDomainKey: { success: ACTIVATION, errors: [ACTIVATION], unknown: NO_KEY },
  deactivateDomainKey: { success: ACTIVATION, errors: [ACTIVATION], unknown: NO_KEY },
  changeDkimAuthority: {
    success: [KEYS, 'authority: to the nearest parent and back, the former key signs meanwhile'],
    errors: [[KEYS, 'a domain without keys of its own gets one when it becomes its own authority']],
    unknown: NO_DOMAIN,
    form: { self: 'true' },
  },
  changeDkimSelector: {
    success: [KEYS, 'a new selector signs once DNS has it, and the pair stays the same'],
    errors: [[SECURITY, 'managed keys are listed as CNAME and left alone by the other operations']],
    unknown: NO_DOMAIN,
  },
  updateKeyRotation: { success: ROTATION, errors: [ROTATION], unknown: NO_ROTATION },
  readKeyRotation: { success: ROTATED, errors: [], unknown: NO_DOMAIN },
  rotateKey: { success: ROTATED, errors: [ROTATED, ROTATION], unknown: NO_ROTATION },
}

const cleanUps: (() => Promise<void> | void)[] = []
let service: TestService
let operations: { id: string; method: string; path: string }[] = []
let basicKey = ''

before(async () => {
  const whole = { after: (run: () => Promise<void>) => cleanUps.unshift(run) } as unknown as TestContext
  service = await startTestService(whole)
  const { body } = await service.call('GET', '/openapi.json')
  type Described = { operationId: string; 'x-alias-of'?: string; tags: string[] }
  const paths = Object.entries(body.paths as Record<string, Record<string, Described>>)
  operations = paths.flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, spec]) => ['Domains', 'Domain keys', 'Tracking'].includes(spec.tags[0] ?? ''))
      .map(([method, spec]) => ({
        id: spec['x-alias-of'] ?? spec.operationId,
        method: method.toUpperCase(),
        path,
      })),
  )
  const made = await service.call('POST', '/v1/keys', { form: { role: 'basic', kind: 'user' } })
  basicKey = made.body.key.secret
  await service.call('POST', '/v4/domains', { form: { name: 'theirs.example', dkim_key_size: '1024' } })
  const database = new DatabaseSync(join(service.config.dataFolder, 'sendwright.db'), { timeout: 5000 })
  database.exec(
    "INSERT INTO accounts (id, parent_id, name, signing_key_sealed, created_at) SELECT 'stranger', NULL, 'Stranger', signing_key_sealed, created_at FROM accounts LIMIT 1",
  )
  database.exec("UPDATE domains SET account_id = 'stranger' WHERE name = 'theirs.example'")
  database.exec("UPDATE dkim_keys SET account_id = 'stranger' WHERE authority = 'theirs.example'")
  database.close()
})
after(async () => {
  for (const cleanUp of cleanUps) await cleanUp()
})

const pathOf = (path: string, name: string) =>
  path
    .replace(/\{(?:name|authority_name)\}/, name)
    .replace('{host}', `email.${name}`)
    .replace('{selector}', 'k1')

const call = (method: string, path: string, name: string, key?: string, form?: Record<string, string>) =>
  service.call(method, pathOf(path, name), {
    ...(key !== undefined && { key }),
    ...(method !== 'GET' && { form: form ?? {} }),
  })

test('every operation has tests of its success, its errors and its rules', () => {
  assert.ok(operations.length >= Object.keys(TABLE).length)
  for (const { id } of operations) assert.ok(id in TABLE, `${id} is in no line of the table`)
  for (const [id, { success, errors }] of Object.entries(TABLE)) {
    assert.ok(
      operations.some((one) => one.id === id),
      `${id} is no operation`,
    )
    for (const [file, name] of [success, ...errors]) assertTestExists(file, name)
  }
})

test('every operation requires a key, and changing ones a key with write access', async () => {
  for (const { id, method, path } of operations) {
    const none = await call(method, path, 'x.example', 'wrong-key-0123456789')
    assert.deepEqual([none.status, none.body], [401, { message: 'Invalid private key' }], `${id} ${path}`)
    if (method !== 'GET') assert.equal((await call(method, path, 'x.example', basicKey)).status, 403, id)
  }
})

test("every operation treats another account's domain like one that does not exist", async () => {
  for (const { id, method, path } of operations) {
    const { unknown, form } = TABLE[id] as Covered
    if (unknown === 'none') continue
    for (const name of ['nobody.example', 'theirs.example']) {
      const answer = await call(method, path, name, undefined, form)
      assert.deepEqual([answer.status, answer.body], [404, unknown], `${id} ${name}`)
    }
  }
  const remove = await service.call('DELETE', '/v1/dkim/keys?signing_domain=theirs.example&selector=k1')
  assert.deepEqual([remove.status, remove.body], [404, NO_KEY])
  const key = { signing_domain: 'theirs.example', selector: 'mine' }
  const made = await service.call('POST', '/v1/dkim/keys', { form: key })
  assert.deepEqual([made.status, made.body], [404, { message: 'domain not found' }])
  for (const path of ['/v4/domains', '/v1/dkim/keys']) {
    const { text } = await service.call('GET', path)
    assert.ok(!text.includes('theirs.example'), path)
  }
})
