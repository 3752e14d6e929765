/**
 * Every operation of the description in every role, on things of the own account, of its subaccount, of its parent, of a
 * stranger, and on things that do not exist. Expected is what the rights table says. The answer about somebody else's
 * thing is the answer about none.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { randomHex } from '../../src/base/ids.ts'
import type { DescribedRights } from '../../src/platform/http/rights/auth.ts'
import {
  absentHoldings,
  alertOf,
  alertSetting,
  type Holdings,
  limitOf,
  plantHoldings,
  RECIPIENT,
} from '../support/account-holdings.ts'
import { addAccount } from '../support/accounts.ts'
import {
  type DescribedOperation,
  type Given,
  isNested,
  isReferring,
  operationsOf,
} from '../support/described-calls.ts'
import { createReceiver } from '../support/http-receiver.ts'
import { type Actor, inParallel, Matrix, verdictOf } from '../support/rights-matrix.ts'
import { eventually, ownAddress, startTestService, type TestService } from '../support/service.ts'
import { activeUser } from '../support/users.ts'

/** Parameters that the description does not suggest. */
const GIVEN: Given = {
  shareFigure: () => ({ title: 'Shared', query: { dimensions: ['time'], metrics: ['delivered_count'] } }),
  addAlertSetting: ({ domain }) => ({ body: alertSetting(`new.${domain}`) }),
  addMonitoredDomain: () => ({ domain: `new-${randomHex(4)}.com` }),
  addMonitoredIp: ({ ip = '' }) => ({ body: { ip } }),
  addDomainIp: ({ ip = '' }) => ({ ip }),
  addIpPoolIps: ({ ip = '' }) => ({ ips: [ip] }),
  addCallerAddress: () => ({ address: '192.0.2.1' }),
  addMembersJson: () => ({ members: '["new@example.org"]' }),
  addSandboxRecipient: ({ domain }) => ({ email: `new@${domain}` }),
  addWhitelists: () => ({ address: RECIPIENT }),
  callAssistant: () => ({ body: { jsonrpc: '2.0', id: 1, method: 'ping' } }),
  changeAlertSetting: ({ domain }) => ({ body: alertSetting(`changed.${domain}`) }),
  changeCallerAddress: () => ({ address: '127.0.0.0/8' }),
  changeUser: () => ({ name: 'Changed' }),
  checkDomainMessage: ({ domain }) => ({ from: `a@${domain}`, subject: 'Hello', text: 'Hello' }),
  checkMessage: ({ domain = '' }) => ({ domain, from: `a@${domain}`, subject: 'Hello', text: 'Hello' }),
  copyAccountTemplate: ({ account = '' }) => ({ requests: [{ account_id: account, name: 'copied' }] }),
  createAlert: ({ alert }) => ({ body: alertOf(`new-${alert}`) }),
  createAccountTemplateVersion: () => ({ template: 'Hello' }),
  createAccountWebhook: ({ hook = '' }) => ({ url: `${hook}/new`, event_types: 'opened' }),
  createDnsChange: () => ({ body: { dry_run: true } }),
  createDomain: ({ domain }) => ({ name: `new.${domain}` }),
  createDomainV3: ({ domain }) => ({ name: `newer.${domain}` }),
  createDomainWebhook: ({ hook = '' }) => ({ id: 'opened', url: `${hook}/new` }),
  createDomainWebhookUrl: ({ hook = '' }) => ({ url: `${hook}/newer`, event_types: 'opened' }),
  createExport: () => ({ url: `/v3/domains?x=${randomHex(4)}` }),
  createList: ({ domain }) => ({ address: `new@${domain}` }),
  createRelay: () => ({ name: `relay-${randomHex(4)}`, ...RELAY }),
  createRoute: () => ({ expression: 'catch_all()', action: 'store()' }),
  createUsageLimit: ({ limit }) => ({ body: limitOf(`new-${limit}`) }),
  createTemplateVersion: () => ({ template: 'Hello' }),
  erasePerson: () => ({ address: RECIPIENT, dry_run: 'true' }),
  exportPerson: () => ({ address: RECIPIENT, dry_run: 'true' }),
  delegateIpPool: ({ subaccount_id = '' }) => ({ subaccount_id }),
  delegateIpPoolToSubaccount: ({ pool_id = '' }) => ({ pool_id }),
  deleteAccountWebhooks: () => ({ all: 'true' }),
  deleteDomainWebhookUrls: ({ hook = '' }) => ({ url: `${hook}/newer` }),
  inviteUser: ({ domain }) => ({ email: `new@${domain}` }),
  listSpamTrapHitsByDay: () => ({ start: '2026-01-01', end: '2026-01-31' }),
  matchRoute: ({ domain = '' }) => ({ address: `orders-${domain.split('.')[0]}@example.org` }),
  moveScheduled: () => ({ deliverytime: inAnHour() }),
  putEventSink: () => ({ body: { kind: 'stdout', events: ['none'] } }),
  putDnsProvider: () => ({ body: { kind: 'desec', secret: 'token', api_url: NOWHERE } }),
  readDomainsStats: () => ({ timestamp: '1700000000' }),
  releaseInbox: () => ({ body: { to: [RECIPIENT] } }),
  removeMonitoredDomain: ({ monitored_domain = '' }) => ({ domain: monitored_domain }),
  removeCallerAddress: () => ({ address: '192.0.2.1' }),
  renderTemplate: () => ({ content: { text: 'Hello' } }),
  replaceAlert: ({ alert = '' }) => ({ body: alertOf(alert) }),
  replaceUsageLimit: ({ limit = '' }) => ({ body: limitOf(limit) }),
  replaceGoogleReputationSource: () => ({
    ...{ grant: 'refresh_token', client_id: 'client', client_secret: 'secret', refresh_token: 'token' },
    ...{ token_url: NOWHERE, api_url: NOWHERE },
  }),
  replaceInboxFaults: () => ({ body: [] }),
  replaceInboxTags: () => ({ body: { tags: [] } }),
  replaceRelay: () => RELAY,
  replaceRelayRules: () => ({ body: { items: [] } }),
  replaceSndsReputationSource: () => ({ key: 'key', api_url: NOWHERE }),
  replayWebhooks: () => ({ from: '0' }),
  revokeIpPool: ({ subaccount_id = '' }) => ({ subaccount_id }),
  revokeIpPoolFromSubaccount: ({ pool_id = '' }) => ({ pool_id }),
  runQueueAction: ({ domain }) => ({ action: 'pause', filter: { domain }, dry_run: true }),
  runPlacementTest: ({ domain, seed_list }) => ({
    body: { from: `a@${domain}`, subject: 'Hello', html: 'Hello', seed_list },
  }),
  sendMessage: ({ domain }) => ({ from: `a@${domain}`, subject: 'Hello', text: 'Hello' }),
  sendMimeMessage: ({ domain }) => ({
    message: mimeFile(`From: a@${domain}\r\nTo: ${RECIPIENT}\r\n\r\nHello`),
  }),
  setMessageLimit: () => ({ limit: '5000' }),
  setSiteLimits: () => ({ connections: '5' }),
  // Another one would change what all accounts read.
  setStandingPolicy: () => ({ policy: 'standard' }),
  setSubaccountLimit: () => ({ limit: '5000' }),
  setAccountRateLimit: () => ({ count: '100000' }),
  setSlackWorkspace: () => ({ body: { token: 'xoxb-token', team_id: 'T1', team_name: 'Team', scope: null } }),
  testAlertEmail: ({ domain }) => ({ body: { event_type: 'ip_listed', emails: [`alerts@${domain}`] } }),
  testAlertSlack: () => ({ body: { event_type: 'ip_listed' } }),
  testAlertWebhook: ({ hook = '' }) => ({ body: { event_type: 'ip_listed', url: hook } }),
  testRelay: ({ domain }) => ({ from: `a@${domain}`, to: RECIPIENT }),
  testDomainWebhook: ({ hook = '' }) => ({ url: `${hook}/test` }),
  undoDnsChange: () => ({ body: { dry_run: true } }),
  updateAccount: () => ({ name: 'Changed' }),
  updateAccountFeatures: () => ({ ai_insights: '{"enabled": true}' }),
  updateAccountTemplateVersion: () => ({ template: 'Changed' }),
  updateAccountWebhook: ({ hook = '' }) => ({ url: `${hook}/changed`, event_types: 'opened' }),
  updateDomainWebhook: ({ hook = '' }) => ({ url: hook }),
  updateDomainWebhookUrl: ({ hook = '' }) => ({ url: `${hook}/newer`, event_types: 'opened' }),
  updateIpPool: () => ({ name: randomHex(4) }),
  updateMonitoredIp: () => ({ body: {} }),
  updateMailfromHost: ({ domain }) => ({ mailfrom_host: `bounce.${domain}` }),
  updateSubaccountFeatures: () => ({ validations: '{"enabled": true}' }),
  updateTemplateVersion: () => ({ template: 'Changed' }),
  verifyMonitoredDomain: ({ monitored_domain = '' }) => ({ domain: monitored_domain }),
  updateWebPrefix: () => ({ web_prefix: 'email' }),
}

/** Nothing listens there. */
const RELAY = { host: '127.0.74.99', tls: 'none' }
const NOWHERE = 'http://127.0.74.99/'

const inAnHour = () => String(Math.floor(Date.now() / 1000) + 3_600)
const mimeFile = (content: string) => new File([content], 'message.eml')

/** Statuses of an admin's call on an own thing, where it is not a success, and why. */
const OWN_STATUS: Record<string, readonly [number, string]> = {
  readGoogleReputationSource: [404, 'none is stored yet'],
  readSndsReputationSource: [404, 'as above'],
  listBounceEvents: [410, 'is no longer served'],
  releaseStanding: [400, 'it is not stopped'],
  deleteSpamTrap: [404, 'the address is none'],
  readMessageLimit: [404, 'none is set'],
  readSubaccountLimit: [404, 'as above'],
  createDnsChange: [409, 'nothing answers there'],
  releaseInbox: [409, 'nothing answers there'],
  undoDnsChange: [404, 'nothing was written'],
  createValidationJob: [400, 'the name is taken'],
  createValidationPreview: [400, 'as above'],
  promoteValidationPreview: [400, 'as above'],
  readListValidation: [404, 'none was made'],
  getEmailPreviewResults: [404, 'none can be made'],
  readExportUrl: [302, 'leads to the file'],
  readBounceGroup: [404, 'no rule has the name'],
  readSlackChannel: [404, 'there is no workspace'],
  testAlertSlack: [400, 'no setting sends to Slack'],
  setIpBand: [400, 'there are no dynamic pools'],
  setDynamicPools: [400, 'the only address is in a pool'],
  addDynamicPoolIp: [400, 'there are no dynamic pools'],
  updateDynamicPool: [400, 'as above'],
  enrollDomain: [400, 'as above'],
  enrollAllDomains: [400, 'as above'],
  replaceDomainIps: [400, 'it is not enrolled'],
  setDomainBand: [400, 'as above'],
  startIpWarmup: [400, 'it is in progress'],
  releaseContentHold: [404, 'nothing is held'],
  dropContentHold: [404, 'as above'],
  clearIpBlock: [404, 'no provider blocks it'],
  readTrackingCertificate: [404, 'none was requested'],
  requestTrackingCertificate: [400, 'the service has no HTTPS'],
  renewTrackingCertificate: [404, 'none was requested'],
  allowUserPassword: [400, 'the user has one'],
  activateDomainKey: [400, 'DNS does not have the key'],
  updateKeyRotation: [400, 'there is no DNS zone for keys'],
  rotateKey: [400, 'as above'],
  changeOwnPassword: [400, 'the password is wrong: a right one would end the session'],
  confirmTotp: [400, 'the code is wrong'],
  renewRecoveryCodes: [400, 'there is no second factor'],
  beginPasskey: [400, 'the public URL allows no passkeys'],
  addPasskey: [400, 'as above'],
  renamePasskey: [404, 'as above'],
  removePasskey: [404, 'as above'],
  proveOwnUser: [400, 'neither password nor passkey is given'],
  endOwnSession: [404, 'it belongs to no user'],
}

/** The operator's, who reaches every account. */
const REACHES_ALL = [
  ...['listAccountRateLimits', 'setAccountRateLimit', 'deleteAccountRateLimit'],
  ...['readAccountStanding', 'releaseStanding', 'setAccountStandingPolicy', 'deleteAccountStandingPolicy'],
  ...['disableDomain', 'enableDomain'],
  ...['updateIp', 'setSharedIps'],
  // Relays are its own, too.
  ...['addSnsTopic', 'deleteSnsTopic'],
  // So are the credentials of what large receivers publish.
  ...['readGoogleReputationSource', 'replaceGoogleReputationSource', 'deleteGoogleReputationSource'],
  ...['readSndsReputationSource', 'replaceSndsReputationSource', 'deleteSndsReputationSource'],
  ...['testGoogleReputationSource', 'testSndsReputationSource'],
  // Sites are nobody's.
  ...['pauseSite', 'resumeSite', 'setSiteLimits', 'resetSiteLimits'],
]

/** Operations that remove what another one removes, by their ids. */
const REMOVED_BY: Record<string, string> = {
  deleteMessageLimit: 'deleteSubaccountLimit',
  deleteAccountTag: 'deleteTagByPath',
}

/** Called for a subaccount only: the header names it, and an own call has none. */
const NAMED_BY_HEADER = 'deleteSubaccount'

/** What reaches things of subaccounts without the header, and why. */
const REACHES_SUBACCOUNTS: Record<string, string> = {
  readAlert: 'alerts.md rule 13',
  replaceAlert: 'as above',
  deleteAlert: 'as above',
  readUsageLimit: 'as above',
  replaceUsageLimit: 'as above',
  deleteUsageLimit: 'as above',
  enrollDomain: 'dynamic-pools.md section 2',
  replaceDomainIps: 'as above',
  previewDomainBand: 'as above',
  setDomainBand: 'as above',
  deleteDomainBand: 'as above',
  listDomainBands: 'as above',
}

/** The description must have more; fewer mean that it was not understood. */
const OPERATIONS_MIN = 190
const FAULTS_SHOWN = 200

type Guarded = DescribedOperation & { rights: DescribedRights }

interface Account {
  id: string
  holdings: Holdings
  /** The admin first. */
  actors: Actor[]
}

/** All accounts of the test. */
interface World {
  service: TestService
  parent: Account
  child: Account
  stranger: Account
  absent: Holdings
  operations: Guarded[]
  /** Ids of operations that were called on own things, perhaps by another path. */
  removed: Set<string>
}

test('who may call what, on whose things', async (t) => {
  const world = await start(t)
  const matrix = new Matrix(world.service, GIVEN)
  t.after(() => matrix.close())
  const { parent, child, stranger } = world
  const accounts = [parent, child, stranger]

  const statesOf = () => Promise.all(accounts.map((account) => stateOf(world, matrix, account)))
  const before = await statesOf()
  await inParallel(world.operations.flatMap((operation) => refusedCalls(world, matrix, operation)))
  assert.deepEqual(matrix.faults.slice(0, FAULTS_SHOWN), [])
  assert.deepEqual(changesOf(before, await statesOf()), [], 'no refused call has changed anything')

  for (const operation of world.operations.toSorted((one, other) => rankOf(one) - rankOf(other)))
    await allowedCalls(world, matrix, operation)
  assert.deepEqual(matrix.faults.slice(0, FAULTS_SHOWN), [])
  const left = [await stateOf(world, matrix, stranger)]
  assert.deepEqual(changesOf(before.slice(2), left), [], 'no call has reached a stranger')
  assert.ok(matrix.calls > 3_000, `${matrix.calls} calls`)
})

/** Calls that must have no effect: without the right, or with it on somebody else's things. */
function refusedCalls(world: World, matrix: Matrix, operation: Guarded): (() => Promise<void>)[] {
  const { parent, child, stranger, absent } = world
  const { rights } = operation
  const behalf = child.id
  const works: (() => Promise<void>)[] = []
  const refused = (actor: Actor, what: string, status: number, held: Holdings, header?: string) =>
    works.push(async () => {
      const outcome = await matrix.call(operation, actor, held, { ...(header && { behalf: header }) })
      matrix.expect(operation, actor, `${what}, expected ${status}`, outcome, outcome.status === status)
    })
  const same = (
    actor: Actor,
    what: string,
    held: Holdings,
    more: { behalf?: string; outer?: Holdings } = {},
  ) => works.push(() => matrix.same(operation, actor, what, [held, absent], more))

  for (const actor of parent.actors) {
    const own = verdictOf(rights, actor, { isOwn: true, isFirst: true })
    if (own !== 'allowed') refused(actor, 'own', own, parent.holdings)
    const acting = verdictOf(rights, actor, { isOwn: false, isFirst: false })
    if (acting !== 'allowed') refused(actor, 'for the subaccount', acting, child.holdings, behalf)
    const foreign = verdictOf(rights, actor, { isOwn: false, isFirst: true })
    if (foreign !== 'allowed') refused(actor, "a stranger's", foreign, stranger.holdings)
    else if (isReferring(operation) && !REACHES_ALL.includes(operation.id)) {
      same(actor, "a stranger's", stranger.holdings)
      if (REACHES_SUBACCOUNTS[operation.id] === undefined)
        same(actor, "the subaccount's without the header", child.holdings)
      if (isNested(operation, parent.holdings, stranger.holdings)) {
        same(actor, "a stranger's in an own domain", stranger.holdings, { outer: parent.holdings })
        same(actor, "the subaccount's in an own domain", child.holdings, { outer: parent.holdings })
      }
    }
  }
  const [admin] = parent.actors as [Actor]
  if (verdictOf(rights, admin, { isOwn: true, isFirst: true }) === 'allowed') {
    const status = operation.id === NAMED_BY_HEADER ? 404 : 403
    refused(admin, 'for a stranger', status, stranger.holdings, stranger.id)
  }
  if (isReferring(operation) && verdictOf(rights, admin, { isOwn: true, isFirst: false }) === 'allowed')
    same(admin, 'its own, for the subaccount', parent.holdings, { behalf })
  for (const actor of child.actors) {
    const verdict = verdictOf(rights, actor, { isOwn: false, isFirst: false, isItself: true })
    if (verdict !== 'allowed') refused(actor, "the parent's", verdict, parent.holdings)
    else if (isReferring(operation)) same(actor, "the parent's", parent.holdings)
  }
  return works
}

/** Calls on own things, by the account and by the parent that acts for it; the admin's must succeed. */
async function allowedCalls(world: World, matrix: Matrix, operation: Guarded): Promise<void> {
  const { parent, child } = world
  const isRemoved = [operation.id, REMOVED_BY[operation.id]].some((id) => id && world.removed.has(id))
  const isRepeated = operation.method === 'DELETE' && isRemoved
  world.removed.add(operation.id)
  for (const [behalf, { holdings }] of [
    [undefined, parent],
    [child.id, child],
  ] as const) {
    const isFirst = behalf === undefined
    const wanted = operation.id === NAMED_BY_HEADER && isFirst ? 400 : OWN_STATUS[operation.id]?.[0]
    const allowed = parent.actors.filter(
      (actor) => verdictOf(operation.rights, actor, { isOwn: isFirst, isFirst }) === 'allowed',
    )
    for (const [index, actor] of allowed.entries()) {
      const outcome = await matrix.call(operation, actor, holdings, { ...(behalf && { behalf }) })
      const { status } = outcome
      // An earlier call may have made or removed what this one names.
      const isRight =
        index > 0 || isRepeated
          ? ![401, 403].includes(status)
          : wanted === undefined
            ? status < 300
            : status === wanted
      matrix.expect(operation, actor, isFirst ? 'own' : 'for the subaccount', outcome, isRight)
    }
  }
}

/** Reads first, then changes, then those of the own user, then what removes a part, and last what removes the whole. */
function rankOf({ id, method, path, rights }: Guarded): number {
  if (id === NAMED_BY_HEADER) return 2_000
  // The public key of the actor ends with it.
  if (id === 'regeneratePublicKey') return 50
  if (['endSessions', 'deleteDomain'].includes(id)) return 1_000
  if (method === 'GET') return 0
  if (rights.area === 'own-user') return id === 'signOutEverywhere' ? 900 : 2
  return method === 'DELETE' ? 100 - path.split('/').length : 1
}

/** What they read changes by itself. */
const VOLATILE =
  /^(listAudit|listAuditActions|readAvailableIps|listSessions|readSystem|readPrometheusMetrics|runChecks|explainDomainDns|streamInbox|readTrackingCertificate|previewDomainBand|listValidationJobs|readValidationJob)$/

/** Everything that the account's admin reads. */
async function stateOf(
  { operations }: World,
  matrix: Matrix,
  account: Account,
): Promise<Record<string, string>> {
  const [admin] = account.actors as [Actor]
  const state: Record<string, string> = {}
  const reads = operations.filter(
    ({ id, method, rights }) => method === 'GET' && rights.area !== 'events' && !VOLATILE.test(id),
  )
  await inParallel(
    reads.map((operation) => async () => {
      const { status, text } = await matrix.call(operation, admin, account.holdings)
      state[operation.path] = `${status} ${text.replace(PASSING, '')}`
    }),
  )
  return state
}

/** Passes by itself. */
const PASSING = /"_duration":"\d+m?s"|"behind_seconds":\d+|"hour_started_at":"[^"]+"/g

/** What has another value, with both. */
const changesOf = (before: readonly Record<string, string>[], after: readonly Record<string, string>[]) =>
  before.flatMap((state, at) =>
    Object.entries(state).flatMap(([path, text]) =>
      after[at]?.[path] === text ? [] : [`${path}: ${text}, then ${after[at]?.[path]}`],
    ),
  )

async function start(t: TestContext): Promise<World> {
  const receiver = await createReceiver()
  t.after(() => receiver.close())
  const env = {
    SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8',
    SENDWRIGHT_INBOX_RELEASE: `smtp://${ownAddress()}:25`,
    // The parent's own has a pool, and the others request theirs.
    SENDWRIGHT_IPS:
      '127.0.74.13,127.0.74.18=shared,127.0.74.14=spare,127.0.74.15=spare,127.0.74.23=spare,127.0.74.24=spare,127.0.74.25=spare,127.0.74.33=spare',
    // Nothing listens there.
    SENDWRIGHT_DNS: `${ownAddress()}:53`,
  }
  const service = await startTestService(t, env)
  const { accountId } = service.service.first
  const added = { child: addAccount(service, accountId), stranger: addAccount(service) }
  const account = async (id: string, word: string, key: string, subaccountId: string): Promise<Account> => {
    const holdings = await plantHoldings(service, { id, key, word, hookUrl: receiver.url, subaccountId })
    return { id, holdings, actors: await keyActors(service, key, word, holdings['domain'] as string) }
  }
  const parent = await account(accountId, 'parental', service.key, added.child.id)
  // Relays and event sinks are the operator's.
  const relay = { name: parent.holdings['relay'], ...RELAY }
  assert.equal((await service.call('POST', '/sendwright/v1/relays', { json: relay })).status, 200)
  const sink = `/sendwright/v1/event-sinks/${parent.holdings['event_sink']}`
  assert.equal((await service.call('PUT', sink, { json: { kind: 'stdout', events: ['none'] } })).status, 200)
  const { cookie } = await activeUser(service, 'billing@example.org', 'billing')
  const publicKey = (await service.call('POST', '/v1/keys/public')).body.key as string
  parent.actors.push(
    { name: 'billing', role: 'billing', isUser: true, credentials: { key: null, headers: { cookie } } },
    { name: 'the public key', role: 'public', credentials: { key: publicKey } },
    { name: 'nobody', role: 'none', credentials: { key: null } },
  )
  const described = operationsOf((await service.call('GET', '/openapi.json')).body.paths)
  assert.ok(described.length >= OPERATIONS_MIN)
  for (const { method, path, rights } of described) assert.ok(rights, `${method} ${path} has a row`)
  const { id: ofStranger } = addAccount(service, added.stranger.id)
  const child = await account(added.child.id, 'filial', added.child.key, randomHex(12))
  const stranger = await account(added.stranger.id, 'strange', added.stranger.key, ofStranger)
  // What is still posted would look like a change later.
  await eventually('no webhook waits', async () => {
    const { text } = await service.call('GET', '/metrics')
    return !/^sendwright_posts_waiting\{.*\} [1-9]/m.test(text)
  })
  return {
    ...{ service, parent, child, stranger },
    absent: absentHoldings(parent.holdings, 'parental'),
    removed: new Set(),
    operations: described.filter((one): one is Guarded => one.rights !== undefined && 'area' in one.rights),
  }
}

/** A key of each role; the admin first. */
async function keyActors(
  service: TestService,
  admin: string,
  word: string,
  domain: string,
): Promise<Actor[]> {
  const actors: Actor[] = [{ name: `admin, ${word}`, role: 'admin', credentials: { key: admin } }]
  for (const role of ['developer', 'support', 'basic', 'sending'] as const) {
    const form = { role, ...(role === 'sending' && { kind: 'domain', domain_name: domain }) }
    const answer = await service.call('POST', '/v1/keys', { form, key: admin })
    assert.equal(answer.status, 200, answer.text)
    actors.push({ name: `${role}, ${word}`, role, credentials: { key: answer.body.key.secret } })
  }
  return actors
}
