// Own process: it filters by the time in ids, which stay behind the latest clock of any test in the process.
/** Every operation that changes something writes one row to the audit log, without a secret in it. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createTestClock } from '../../../test/support/clock.ts'
import { eachDatabase } from '../../../test/support/databases.ts'
import { createDnsServer, type DnsServer } from '../../../test/support/dns-server.ts'
import { createReceiver } from '../../../test/support/http-receiver.ts'
import {
  type Answer,
  type CallOptions,
  eventually,
  startTestService,
  type TestService,
} from '../../../test/support/service.ts'
import { eachStore } from '../../../test/support/stores.ts'
import { activeUser, as, cookieOf, mailedToken, post, signIn } from '../../../test/support/users.ts'
import { createAuditLog } from './audit-log.ts'

interface Row {
  id: string
  key_id: string
  remote_address: string
  request_id: string | null
  action: string
  subject: string
  status: number | null
  detail: Record<string, unknown>
}

const rowsOf = async (service: TestService, query = ''): Promise<Row[]> =>
  (await service.call('GET', `/sendwright/v1/audit?limit=1000${query}`)).body.items

/** Each operation that is not recorded, and why. Add to this list only with an equally good reason. */
const NOT_RECORDED = {
  beginOidcSignIn: 'changes nothing',
  beginPasskey: 'changes nothing',
  beginPasskeySignIn: 'changes nothing',
  beginProof: 'changes nothing',
  sendMessage: 'each message is an event',
  sendMimeMessage: 'each message is an event',
  resendMessage: 'each message is an event',
  takeSnsNotification: 'what servers report of mail is an event',
  readDmarcReferral: 'reads only',
  takeTlsReport: 'what servers report of mail is a report',
  unsubscribe: 'what recipients do is an event',
  renderTemplate: 'reads only',
  checkMessage: 'sends and changes nothing',
  callAssistant: 'each call of a tool is recorded by itself',
  checkDomainMessage: 'sends and changes nothing',
  readBounceMetrics: 'reads only',
  readMetrics: 'reads only',
  readUsageMetrics: 'reads only',
  listLogs: 'reads only',
  confirmMember: 'what people do is in the consent trail',
  joinList: 'what people do is in the consent trail',
  listAccountTags: 'reads only',
  validateAddressOfForm: 'reads only',
}

/** What no row may contain; the passwords, URLs, keys and contents below include parts of it. */
const PLANTED = 'planted'
const PASSWORD = `${PLANTED}-Password-1`

interface Planned {
  id: string
  method: string
  path: string
  options?: CallOptions
  status?: number
  action: string
  subject: string
  /** Members of `detail.given`. */
  given?: Record<string, unknown>
}

const plan = (
  id: string,
  request: string,
  row: { action: string; subject: string; given?: Record<string, unknown>; status?: number },
  options: CallOptions = {},
): Planned => {
  const [method = '', path = ''] = request.split(' ')
  return { id, method, path, options, ...row }
}

const NAME = 'audited.example'
const HOOKS = `/v3/domains/${NAME}/webhooks`
const HIDDEN = '(not recorded)'

function domainCalls(): Planned[] {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const pem = privateKey.export({ type: 'pkcs1', format: 'pem' }).toString()
  const archive = `https://192.0.2.1/copies?token=${PLANTED}`
  const archiveKept = 'https://192.0.2.1/copies'
  const onDomain = (id: string, request: string, action: string, form: Record<string, string> = {}) =>
    plan(id, request, { action, subject: NAME, given: form }, { form })
  const onKey = (verb: string, status: number) =>
    plan(`${verb}DomainKey`, `PUT /v4/domains/${NAME}/keys/mine/${verb}`, {
      action: `domain-key.${verb}`,
      subject: `${NAME}/mine`,
      status,
    })
  const keyForm = { signing_domain: NAME, selector: 'mine' }
  return [
    plan(
      'createDomain',
      'POST /v4/domains',
      {
        action: 'domain.create',
        subject: NAME,
        given: { name: HIDDEN, smtp_password: HIDDEN, archive_to: archiveKept, message_ttl: '7200' },
      },
      { form: { name: NAME, smtp_password: PASSWORD, archive_to: archive, message_ttl: '7200' } },
    ),
    plan(
      'createDomainV3',
      'POST /v3/domains',
      { action: 'domain.create', subject: 'third.example' },
      { form: { name: 'third.example' } },
    ),
    plan(
      'updateDomain',
      `PUT /v4/domains/${NAME}`,
      { action: 'domain.update', subject: NAME, given: { smtp_password: HIDDEN, archive_to: archiveKept } },
      { form: { smtp_password: PASSWORD, archive_to: archive } },
    ),
    onDomain('verifyDomain', `PUT /v4/domains/${NAME}/verify`, 'domain.verify'),
    onDomain('updateConnection', `PUT /v3/domains/${NAME}/connection`, 'connection.update', {
      require_tls: 'true',
    }),
    onDomain('updateMessageTtl', `PUT /v3/domains/${NAME}/message_ttl`, 'message-ttl.update', {
      message_ttl: '86400',
    }),
    onDomain('updateMailfromHost', `PUT /v3/domains/${NAME}/mailfrom_host`, 'mailfrom-host.update', {
      mailfrom_host: `bounce.${NAME}`,
    }),
    onDomain('updateWebPrefix', `PUT /v3/domains/${NAME}/web_prefix`, 'web-prefix.update', {
      web_prefix: 'links',
    }),
    onDomain('updateOpenTracking', `PUT /v3/domains/${NAME}/tracking/open`, 'open-tracking.update', {
      active: 'yes',
    }),
    onDomain('updateClickTracking', `PUT /v3/domains/${NAME}/tracking/click`, 'click-tracking.update', {
      active: 'htmlonly',
    }),
    plan(
      'updateUnsubscribeTracking',
      `PUT /v3/domains/${NAME}/tracking/unsubscribe`,
      {
        action: 'unsubscribe-tracking.update',
        subject: NAME,
        given: { active: 'yes', text_footer: HIDDEN },
      },
      { form: { active: 'yes', text_footer: PLANTED } },
    ),
    plan(
      'updateTopics',
      `PUT /sendwright/v1/domains/${NAME}/topics`,
      { action: 'topics.update', subject: NAME, given: { active: 'no', topics: '[]' } },
      { form: { active: 'no', topics: '[]' } },
    ),
    plan(
      'requestTrackingCertificate',
      `POST /v2/x509/links.${NAME}`,
      { action: 'tracking-certificate.request', subject: `links.${NAME}`, status: 400 },
      {},
    ),
    plan(
      'renewTrackingCertificate',
      `PUT /v2/x509/links.${NAME}`,
      { action: 'tracking-certificate.renew', subject: `links.${NAME}`, status: 404 },
      {},
    ),
    plan(
      'createDomainKey',
      'POST /v1/dkim/keys',
      { action: 'domain-key.create', subject: `${NAME}/mine`, given: { ...keyForm, pem: HIDDEN } },
      { form: { ...keyForm, pem } },
    ),
    onKey('activate', 400),
    onKey('deactivate', 200),
    plan('deleteDomainKey', `DELETE /v1/dkim/keys?signing_domain=${NAME}&selector=mine`, {
      action: 'domain-key.delete',
      subject: `${NAME}/mine`,
    }),
    onDomain('changeDkimAuthority', `PUT /v3/domains/${NAME}/dkim_authority`, 'dkim-authority.change', {
      self: 'true',
    }),
    onDomain('changeDkimSelector', `PUT /v3/domains/${NAME}/dkim_selector`, 'dkim-selector.change', {
      dkim_selector: 'newer',
    }),
    plan(
      'updateKeyRotation',
      `PUT /v1/dkim_management/domains/${NAME}/rotation`,
      { action: 'domain-key.set-rotation', subject: NAME, status: 400 },
      { form: { rotation_enabled: 'yes', rotation_interval: '30d' } },
    ),
    plan('rotateKey', `POST /v1/dkim_management/domains/${NAME}/rotate`, {
      action: 'domain-key.rotate',
      subject: NAME,
      status: 400,
    }),
  ]
}

function accountCalls(): Planned[] {
  const credentials = `/v3/domains/${NAME}/credentials`
  return [
    plan(
      'createKey',
      'POST /v1/keys',
      {
        action: 'key.create',
        subject: '{key}',
        given: { role: 'developer', kind: 'user', description: HIDDEN, expiration: '3600' },
      },
      { form: { role: 'developer', kind: 'user', description: PLANTED, expiration: '3600' } },
    ),
    plan('deleteKey', 'DELETE /v1/keys/{key}', {
      action: 'key.delete',
      subject: '{key}',
    }),
    plan('regeneratePublicKey', 'POST /v1/keys/public', { action: 'public-key.regenerate', subject: '' }),
    plan(
      'addCallerAddress',
      'POST /v2/ip_whitelist',
      {
        action: 'caller-address.add',
        subject: '127.0.0.0/8',
        given: { address: '127.0.0.0/8', description: 'here' },
      },
      { form: { address: '127.0.0.0/8', description: 'here' } },
    ),
    plan(
      'changeCallerAddress',
      'PUT /v2/ip_whitelist',
      { action: 'caller-address.change', subject: '127.0.0.0/8' },
      { form: { address: '127.0.0.0/8', description: 'there' } },
    ),
    plan('removeCallerAddress', 'DELETE /v2/ip_whitelist?address=127.0.0.0/8', {
      action: 'caller-address.remove',
      subject: '127.0.0.0/8',
      given: { address: '127.0.0.0/8' },
    }),
    plan(
      'updateAccountFeatures',
      'PUT /v5/accounts/features',
      { action: 'account-features.update', subject: '', given: { ai_insights: '{"enabled": true}' } },
      { form: { ai_insights: '{"enabled": true}' } },
    ),
    plan('resendActivationEmail', 'POST /v5/accounts/resend_activation_email', {
      action: 'activation-email.resend',
      subject: '',
    }),
    plan('createLoginLink', 'POST /sendwright/v1/login-links', {
      action: 'login-link.create',
      subject: '',
    }),
    plan(
      'createAdmin',
      'POST /sendwright/v1/admins',
      {
        action: 'admin.create',
        subject: '',
        given: { email: 'boss@example.com', name: HIDDEN, password: HIDDEN },
        status: 403,
      },
      { form: { email: 'boss@example.com', name: PLANTED, password: PASSWORD } },
    ),
    plan(
      'startBackup',
      'POST /sendwright/v1/backups',
      {
        action: 'backup.start',
        subject: '',
        given: { folder: '/backups/one', with_secret: 'yes' },
        status: 403,
      },
      { form: { folder: '/backups/one', with_secret: 'yes' } },
    ),
    plan('endSessions', 'DELETE /sendwright/v1/sessions', { action: 'sessions.end', subject: '' }),
    plan('endSession', 'DELETE /sendwright/v1/sessions/session-000000000000000000000000', {
      action: 'session.end',
      subject: 'session-000000000000000000000000',
      status: 404,
    }),
    ...limitCalls(),
    ...['export', 'erase'].map((verb) =>
      plan(
        `${verb}Person`,
        `POST /sendwright/v1/people/${verb}`,
        {
          action: `person.${verb}`,
          subject: `{${verb}_task}`,
          given: { address: HIDDEN, dry_run: 'true' },
          status: 202,
        },
        { form: { address: `${PLANTED}@example.org`, dry_run: 'true' } },
      ),
    ),
    plan('regenerateSigningKey', 'POST /v5/accounts/http_signing_key', {
      action: 'signing-key.regenerate',
      subject: '',
    }),
    plan(
      'createCredentials',
      `POST ${credentials}`,
      { action: 'credentials.create', subject: NAME, given: { login: 'alice', password: HIDDEN } },
      { form: { login: 'alice', password: PASSWORD } },
    ),
    plan(
      'changeCredential',
      `PUT ${credentials}/alice`,
      { action: 'credential.change', subject: `${NAME}/alice`, given: { password: HIDDEN } },
      { form: { password: `${PASSWORD}b` } },
    ),
    plan('deleteCredential', `DELETE ${credentials}/alice`, {
      action: 'credential.delete',
      subject: `${NAME}/alice`,
    }),
    plan('deleteCredentials', `DELETE ${credentials}`, { action: 'credentials.delete', subject: NAME }),
  ]
}

function limitCalls(): Planned[] {
  const own = '/v5/accounts/limit/custom/monthly'
  const child = '000000000000000000000000'
  const ofChild = `/v5/accounts/subaccounts/${child}/limit/custom/monthly`
  const on = (id: string, request: string, action: string, subject = '', status = 200) =>
    plan(id, request, { action, subject, status })
  const rates = `/sendwright/v1/accounts/${child}/rate-limits`
  const form = { limit: '5000' }
  return [
    plan(
      'setAccountRateLimit',
      `PUT ${rates}/lists`,
      { action: 'account-rate-limit.set', subject: `${child}/lists`, given: { count: '5' }, status: 404 },
      { form: { count: '5' } },
    ),
    on('deleteAccountRateLimit', `DELETE ${rates}/lists`, 'account-rate-limit.delete', `${child}/lists`, 404),
    plan(
      'addSandboxRecipient',
      'POST /v5/sandbox/auth_recipients',
      { action: 'sandbox-recipient.add', subject: 'test@example.org', given: { email: 'test@example.org' } },
      { form: { email: 'test@example.org' } },
    ),
    on(
      'deleteSandboxRecipient',
      'DELETE /v5/sandbox/auth_recipients/test@example.org',
      'sandbox-recipient.delete',
      'test@example.org',
    ),
    plan(
      'setMessageLimit',
      `PUT ${own}`,
      { action: 'message-limit.set', subject: '', given: form },
      { form },
    ),
    on('deleteMessageLimit', `DELETE ${own}`, 'message-limit.delete'),
    on('enableAccount', 'PUT /v5/accounts/limit/custom/enable', 'account.enable'),
    plan(
      'setSubaccountLimit',
      `PUT ${ofChild}`,
      { action: 'subaccount-limit.set', subject: child, given: form, status: 400 },
      { form },
    ),
    on('deleteSubaccountLimit', `DELETE ${ofChild}`, 'subaccount-limit.delete', child, 403),
  ]
}

function subaccountCalls(): Planned[] {
  const path = '/v5/accounts/subaccounts'
  const headers = { 'x-service-on-behalf-of': '{subaccount}' }
  return [
    plan(
      'createSubaccount',
      `POST ${path}`,
      { action: 'subaccount.create', subject: '{subaccount}', given: { name: 'Child' } },
      { form: { name: 'Child' } },
    ),
    plan(
      'disableSubaccount',
      `POST ${path}/{subaccount}/disable`,
      { action: 'subaccount.disable', subject: '{subaccount}', given: { reason: 'abuse', note: 'none' } },
      { form: { reason: 'abuse', note: 'none' } },
    ),
    plan('enableSubaccount', `POST ${path}/{subaccount}/enable`, {
      action: 'subaccount.enable',
      subject: '{subaccount}',
    }),
    plan(
      'updateSubaccountFeatures',
      `PUT ${path}/{subaccount}/features`,
      {
        action: 'subaccount-features.update',
        subject: '{subaccount}',
        given: { sending: '{"enabled":false}' },
      },
      { form: { sending: '{"enabled":false}' } },
    ),
    plan(
      'deleteSubaccount',
      `DELETE ${path}`,
      { action: 'subaccount.delete', subject: '{subaccount}' },
      { headers },
    ),
  ]
}

/** `/me` is for sessions of users only, which have a test below. */
const MONITORED = 'monitored-in-the-audit-log.com'
const [IP, OTHER_IP, SPARE_IP, SHARED_IP] = ['127.0.73.1', '127.0.73.2', '127.0.73.3', '127.0.73.8'] as const
const IPS = `${IP},${OTHER_IP},${SPARE_IP}=spare,${SHARED_IP}=shared`

/** After those of domains and subaccounts. */
function ipCalls(): Planned[] {
  const form = (fields: Record<string, string>) => ({ form: fields })
  const done = (id: string, request: string, action: string, subject: string, status = 200) =>
    plan(id, request, { action, subject, status })
  const given = (
    id: string,
    request: string,
    [action, subject]: [string, string],
    fields: Record<string, string>,
  ) => plan(id, request, { action, subject, given: fields }, form(fields))
  const pool = '/v3/ip_pools/{pool}'
  const ofChild = '/v5/accounts/subaccounts/{subaccount}/ip_pool'
  return [
    done('requestIp', 'POST /v3/ips/request/new', 'ip.request', ''),
    given('setDynamicPools', 'POST /v3/dynamic_pools/all', ['dynamic-pools.set', ''], {
      ...{ good_reputation: IP, poor_reputation: OTHER_IP, new_senders: SPARE_IP },
    }),
    done(
      'addDynamicPoolIp',
      `POST /v3/dynamic_pools/dynamic_good/${IP}`,
      'dynamic-pool-ip.add',
      `dynamic_good/${IP}`,
    ),
    given(
      'updateDynamicPool',
      'PATCH /v3/dynamic_pools/dynamic_poor',
      ['dynamic-pool.update', 'dynamic_poor'],
      { add_ip: OTHER_IP },
    ),
    done('enrollDomain', `POST /v3/domains/${NAME}/dynamic_pools`, 'dynamic-pool-domain.enroll', NAME),
    given(
      'setDomainBand',
      `PUT /v1/dynamic_pools/domains/${NAME}/override`,
      ['dynamic-pool-override.set', NAME],
      { pool: 'dynamic_poor' },
    ),
    done(
      'deleteDomainBand',
      `DELETE /v1/dynamic_pools/domains/${NAME}/override`,
      'dynamic-pool-override.delete',
      NAME,
    ),
    given(
      'replaceDomainIps',
      `DELETE /v3/domains/${NAME}/dynamic_pools`,
      ['dynamic-pool-domain.remove', NAME],
      { replacement_ip: 'shared' },
    ),
    done('deleteDynamicPools', 'DELETE /v3/dynamic_pools/all', 'dynamic-pools.delete', ''),
    plan(
      'enrollAllDomains',
      'POST /v3/domains/all/dynamic_pools/enroll',
      { action: 'dynamic-pool-domain.enroll-all', subject: '', status: 400 },
      form({ include_subaccounts: 'no' }),
    ),
    done('assignIpToDomains', `POST /v3/ips/${IP}/domains`, 'ip-to-domains.assign', IP),
    done('removeIpFromDomains', `DELETE /v3/ips/${IP}/domains`, 'ip-from-domains.remove', IP),
    plan(
      'setIpBand',
      `POST /v3/ips/${IP}/ip_band`,
      { action: 'ip-band.set', subject: IP, given: { ip_band: 'none' }, status: 400 },
      form({ ip_band: 'none' }),
    ),
    given('addDomainIp', `POST /v3/domains/${NAME}/ips`, ['domain-ip.add', NAME], { ip: IP }),
    done('removeDomainIp', `DELETE /v3/domains/${NAME}/ips/all`, 'domain-ip.remove', `${NAME}/all`),
    given('updateIp', `PUT /sendwright/v1/ips/${IP}`, ['ip.update', IP], { enabled: 'true' }),
    given('addMonitoredDomain', 'POST /v1/inboxready/domains', ['monitored-domain.add', MONITORED], {
      domain: MONITORED,
    }),
    given(
      'verifyMonitoredDomain',
      'PUT /v1/inboxready/domains/verify',
      ['monitored-domain.verify', MONITORED],
      {
        domain: MONITORED,
      },
    ),
    given('removeMonitoredDomain', 'DELETE /v1/inboxready/domains', ['monitored-domain.remove', MONITORED], {
      domain: MONITORED,
    }),
    plan(
      'addMonitoredIp',
      'POST /v1/inboxready/ip_addresses',
      {
        ...{ action: 'monitored-ip.add', subject: IP, status: 201 },
        given: { ip: IP, ip_pool: 'main' },
      },
      { json: { ip: IP, ip_pool: 'main', description: PLANTED } },
    ),
    plan(
      'updateMonitoredIp',
      `PUT /v1/inboxready/ip_addresses/${IP}`,
      { action: 'monitored-ip.update', subject: IP, given: { ip_pool: 'other' } },
      { json: { ip_pool: 'other' } },
    ),
    done('removeMonitoredIp', `DELETE /v1/inboxready/ip_addresses/${IP}`, 'monitored-ip.remove', IP, 204),
    // The subaccount was closed above.
    plan(
      'setSharedIps',
      'PUT /sendwright/v1/accounts/{subaccount}/shared-ips',
      { action: 'shared-ips.set', subject: '{subaccount}', given: { allowed: 'false' }, status: 404 },
      form({ allowed: 'false' }),
    ),
    given('createIpPool', 'POST /v3/ip_pools', ['ip-pool.create', '{pool}'], { name: 'Pool', ip: IP }),
    given('updateIpPool', `PATCH ${pool}`, ['ip-pool.update', '{pool}'], { name: 'Named' }),
    done('addIpPoolIp', `PUT ${pool}/ips/${OTHER_IP}`, 'ip-pool-ip.add', `{pool}/${OTHER_IP}`),
    done('removeIpPoolIp', `DELETE ${pool}/ips/${OTHER_IP}`, 'ip-pool-ip.remove', `{pool}/${OTHER_IP}`),
    plan(
      'addIpPoolIps',
      `POST ${pool}/ips.json`,
      { action: 'ip-pool-ips.add', subject: '{pool}' },
      { json: { ips: [OTHER_IP] } },
    ),
    plan(
      'delegateIpPool',
      `PUT ${pool}/delegate?subaccount_id=none`,
      { action: 'ip-pool.delegate', subject: '{pool}', given: { subaccount_id: 'none' }, status: 404 },
      {},
    ),
    plan(
      'revokeIpPool',
      `DELETE ${pool}/delegate?subaccount_id=none`,
      { action: 'ip-pool.revoke', subject: '{pool}', status: 404 },
      {},
    ),
    plan(
      'delegateIpPoolToSubaccount',
      `PUT ${ofChild}`,
      { action: 'ip-pool-to-subaccount.delegate', subject: '{subaccount}', status: 404 },
      form({ pool_id: 'none' }),
    ),
    plan(
      'revokeIpPoolFromSubaccount',
      `DELETE ${ofChild}?pool_id=none`,
      { action: 'ip-pool-from-subaccount.revoke', subject: '{subaccount}', status: 404 },
      {},
    ),
    plan(
      'clearIpBlock',
      `DELETE /sendwright/v1/ips/${IP}/blocks/mx.example`,
      { action: 'ip-block.clear', subject: `${IP}/mx.example`, status: 404 },
      {},
    ),
    ...siteCalls(),
    ...standingCalls(),
    done('startIpWarmup', `POST /v3/ip_warmups/${IP}`, 'ip-warmup.start', IP),
    done('pauseIpWarmup', `POST /sendwright/v1/ip-warmups/${IP}/pause`, 'ip-warmup.pause', IP),
    done('resumeIpWarmup', `POST /sendwright/v1/ip-warmups/${IP}/resume`, 'ip-warmup.resume', IP),
    done('cancelIpWarmup', `DELETE /v3/ip_warmups/${IP}`, 'ip-warmup.cancel', IP),
    done('deleteIpPool', `DELETE ${pool}?ip=shared`, 'ip-pool.delete', '{pool}'),
  ]
}

function siteCalls(): Planned[] {
  const site = '/sendwright/v1/shaping/mx.example'
  const call = (id: string, request: string, action: string, form: Record<string, string> = {}) =>
    plan(id, request, { action, subject: 'mx.example', given: form }, { form })
  return [
    call('pauseSite', `PUT ${site}/pause`, 'site.pause', { reason: 'They asked us to' }),
    call('resumeSite', `DELETE ${site}/pause`, 'site.resume'),
    call('setSiteLimits', `PUT ${site}/limits`, 'site-limits.set', { connections: '20', rate: '300/1m' }),
    call('resetSiteLimits', `DELETE ${site}/limits`, 'site-limits.reset'),
  ]
}

function standingCalls(): Planned[] {
  const child = '000000000000000000000000'
  const path = `/sendwright/v1/accounts/${child}/standing`
  const policy = { policy: 'strict' }
  const trap = { address: 'trap@example.org', note: 'old list' }
  const call = (id: string, request: string, action: string, subject: string, status = 200, form = {}) =>
    plan(id, request, { action, subject, status, given: form }, { form })
  return [
    call('setStandingPolicy', 'PUT /sendwright/v1/standing/policy', 'standing-policy.set', '', 200, policy),
    call('releaseStanding', `POST ${path}/release`, 'standing.release', child, 404),
    call('setAccountStandingPolicy', `PUT ${path}/policy`, 'account-standing-policy.set', child, 404, policy),
    call(
      'deleteAccountStandingPolicy',
      `DELETE ${path}/policy`,
      'account-standing-policy.delete',
      child,
      404,
    ),
    call(
      'disableDomain',
      'POST /sendwright/v1/domains/nobody.example/disable',
      'domain.disable',
      'nobody.example',
      404,
      { reason: 'abuse' },
    ),
    call(
      'enableDomain',
      'POST /sendwright/v1/domains/nobody.example/enable',
      'domain.enable',
      'nobody.example',
      404,
    ),
    call('addSpamTrap', 'POST /sendwright/v1/spam-traps', 'spam-trap.add', trap.address, 200, trap),
    call(
      'deleteSpamTrap',
      `DELETE /sendwright/v1/spam-traps/${trap.address}`,
      'spam-trap.delete',
      trap.address,
    ),
  ]
}

function userCalls(): Planned[] {
  const own = (
    id: string,
    request: string,
    action: string,
    form: Record<string, string> = {},
    subject = '',
  ) =>
    plan(
      id,
      request.replace(' ', ' /sendwright/v1/me/'),
      {
        action,
        subject,
        status: 403,
        given: Object.fromEntries(Object.keys(form).map((name) => [name, HIDDEN])),
      },
      { json: form },
    )
  const proof = { current_password: PASSWORD, code: PASSWORD }
  const onUser = (id: string, request: string, action: string, status: number) =>
    plan(id, request, { action, subject: '{user}', status })
  return [
    plan(
      'inviteUser',
      'POST /v5/users',
      {
        action: 'user.invite',
        subject: '{user}',
        given: { email: 'user@example.org', name: HIDDEN, role: 'basic' },
      },
      { form: { email: 'user@example.org', name: PLANTED, role: 'basic' } },
    ),
    plan(
      'changeUser',
      'PUT /v5/users/{user}',
      {
        action: 'user.change',
        subject: '{user}',
        given: { name: HIDDEN, role: 'support', is_disabled: 'no' },
      },
      { form: { name: PLANTED, role: 'support', is_disabled: 'no' } },
    ),
    onUser('inviteUserAgain', 'POST /sendwright/v1/users/{user}/invitation', 'user.invite-again', 200),
    onUser('removeUserTotp', 'DELETE /sendwright/v1/users/{user}/totp', 'user.remove-totp', 200),
    // It signs in with a password already.
    onUser('allowUserPassword', 'POST /sendwright/v1/users/{user}/password', 'user.allow-password', 400),
    onUser('removeUser', 'DELETE /v5/users/{user}', 'user.remove', 200),
    own('changeOwnPassword', 'PUT password', 'own-password.change', { ...proof, password: PASSWORD }),
    own('signOutEverywhere', 'DELETE sessions', 'own-sessions.end'),
    own('beginTotp', 'POST totp', 'own-totp.begin', { current_password: PASSWORD }),
    own('confirmTotp', 'PUT totp', 'own-totp.confirm', proof),
    own('removeTotp', 'DELETE totp', 'own-totp.remove', proof),
    own('renewRecoveryCodes', 'POST recovery-codes', 'own-recovery-codes.renew', proof),
    own('proveOwnUser', 'POST proof', 'own-user.prove', { ...proof, passkey: PLANTED }),
    own('addPasskey', 'POST passkeys', 'own-passkey.add', { passkey: PLANTED }),
    own('renamePasskey', 'PUT passkeys/abc', 'own-passkey.rename', {}, 'abc'),
    own('removePasskey', 'DELETE passkeys/abc', 'own-passkey.remove', proof, 'abc'),
    own('endOwnSession', 'DELETE sessions/abc', 'own-session.end', {}, 'abc'),
    plan(
      'changeOwnProfile',
      'PUT /sendwright/v1/me',
      {
        action: 'own-profile.change',
        subject: '',
        status: 403,
        given: { name: HIDDEN, language: 'de', time_zone: 'Europe/Berlin' },
      },
      { json: { name: PLANTED, language: 'de', time_zone: 'Europe/Berlin' } },
    ),
    plan(
      'updateAccount',
      'PUT /v5/accounts',
      {
        action: 'account.update',
        subject: '',
        given: {
          name: 'Ours',
          inactive_session_timeout: '3600',
          logout_redirect_url: 'https://192.0.2.1/bye',
        },
      },
      {
        form: {
          name: 'Ours',
          inactive_session_timeout: '3600',
          logout_redirect_url: `https://192.0.2.1/bye?x=${PLANTED}`,
        },
      },
    ),
  ]
}

function webhookCalls(receiver: string): Planned[] {
  const url = `http://${receiver}/hook?token=${PLANTED}`
  const kept = `http://${receiver}/hook`
  const query = `url=${encodeURIComponent(url)}`
  const v4 = `/v4/domains/${NAME}/webhooks`
  return [
    plan(
      'createDomainWebhook',
      `POST ${HOOKS}`,
      { action: 'domain-webhook.create', subject: NAME, given: { id: 'clicked', url: kept } },
      { form: { id: 'clicked', url } },
    ),
    plan(
      'updateDomainWebhook',
      `PUT ${HOOKS}/clicked`,
      { action: 'domain-webhook.update', subject: `${NAME}/clicked`, given: { url: kept } },
      { form: { url } },
    ),
    plan(
      'testDomainWebhook',
      `PUT ${HOOKS}/clicked/test`,
      { action: 'domain-webhook.test', subject: `${NAME}/clicked`, given: { url: kept } },
      { form: { url } },
    ),
    plan('deleteDomainWebhook', `DELETE ${HOOKS}/clicked`, {
      action: 'domain-webhook.delete',
      subject: `${NAME}/clicked`,
    }),
    plan(
      'createDomainWebhookUrl',
      `POST ${v4}`,
      {
        action: 'domain-webhook-url.create',
        subject: NAME,
        given: { url: kept, event_types: ['opened', 'clicked'] },
      },
      { form: { url, event_types: ['opened', 'clicked'] } },
    ),
    plan(
      'updateDomainWebhookUrl',
      `PUT ${v4}`,
      {
        action: 'domain-webhook-url.update',
        subject: NAME,
        given: { url: kept, event_types: 'opened' },
      },
      { form: { url, event_types: 'opened' } },
    ),
    plan('deleteDomainWebhookUrls', `DELETE ${v4}?${query}`, {
      action: 'domain-webhook-urls.delete',
      subject: NAME,
      given: { url: kept },
    }),
    plan(
      'createAccountWebhook',
      'POST /v1/webhooks',
      {
        action: 'account-webhook.create',
        subject: '{webhook}',
        given: { url: kept, event_types: 'opened', description: HIDDEN },
      },
      { form: { url, event_types: 'opened', description: PLANTED } },
    ),
    plan(
      'updateAccountWebhook',
      'PUT /v1/webhooks/{webhook}',
      { action: 'account-webhook.update', subject: '{webhook}', status: 204 },
      { form: { url, event_types: 'opened' } },
    ),
    plan('deleteAccountWebhook', 'DELETE /v1/webhooks/{webhook}', {
      action: 'account-webhook.delete',
      subject: '{webhook}',
      status: 204,
    }),
    plan('deleteAccountWebhooks', 'DELETE /v1/webhooks?all=true', {
      action: 'account-webhooks.delete',
      subject: '',
      given: { all: 'true' },
      status: 404,
    }),
    plan('replayWebhookAttempt', 'POST /sendwright/v1/webhooks/attempts/none/replay', {
      action: 'webhook-attempt.replay',
      subject: 'none',
      status: 404,
    }),
    plan(
      'replayWebhooks',
      'POST /sendwright/v1/webhooks/replay',
      { action: 'webhooks.replay', subject: NAME, given: { domain: HIDDEN, url: kept, from: '1000' } },
      { form: { domain: NAME, url, from: '1000' } },
    ),
  ]
}

/** Templates of a domain, or of the account. */
function templateCalls(scope: 'domain' | 'account'): Planned[] {
  const isDomain = scope === 'domain'
  const root = isDomain ? `/v3/${NAME}/templates` : '/v4/templates'
  const on = (rest: string) => [...(isDomain ? [NAME] : []), ...(rest === '' ? [] : [rest])].join('/')
  const id = (text: string) => (isDomain ? text : text.replace('Template', 'AccountTemplate'))
  const action = (text: string) => (isDomain ? text : `account-${text}`)
  const template = `<p>${PLANTED}</p>`
  return [
    plan(
      id('createTemplate'),
      `POST ${root}`,
      {
        action: action('template.create'),
        subject: on('hello'),
        given: { name: HIDDEN, description: HIDDEN, tag: 'one', template: HIDDEN, engine: 'handlebars' },
      },
      { form: { name: 'hello', description: PLANTED, tag: 'one', template, engine: 'handlebars' } },
    ),
    plan(
      id('updateTemplate'),
      `PUT ${root}/hello`,
      { action: action('template.update'), subject: on('hello'), given: { description: HIDDEN } },
      { form: { description: PLANTED } },
    ),
    plan(
      id('createTemplateVersion'),
      `POST ${root}/hello/versions`,
      {
        action: action('template-version.create'),
        subject: on('hello'),
        given: { tag: 'two', template: HIDDEN },
      },
      { form: { tag: 'two', template } },
    ),
    plan(
      id('updateTemplateVersion'),
      `PUT ${root}/hello/versions/two`,
      {
        action: action('template-version.update'),
        subject: on('hello/two'),
        given: { template: HIDDEN, active: 'yes' },
      },
      { form: { template, active: 'yes' } },
    ),
    plan(
      id('copyTemplateVersion'),
      `PUT ${root}/hello/versions/two/copy/three`,
      { action: action('template-version.copy'), subject: on('hello/two/three') },
      { form: { comment: PLANTED } },
    ),
    plan(id('deleteTemplateVersion'), `DELETE ${root}/hello/versions/three`, {
      action: action('template-version.delete'),
      subject: on('hello/three'),
    }),
    plan(id('renameTemplate'), `PUT ${root}/hello/rename/bye`, {
      action: action('template.rename'),
      subject: on('hello/bye'),
    }),
    plan(id('deleteTemplate'), `DELETE ${root}/bye`, {
      action: action('template.delete'),
      subject: on('bye'),
    }),
    plan(id('deleteTemplates'), `DELETE ${root}`, {
      action: action('templates.delete'),
      subject: on(''),
    }),
  ]
}

/** Changes by validation and inbox placement. */
function validationCalls(): Planned[] {
  const file = new File([`email\n${PLANTED}@example.org\n`], 'addresses.csv', { type: 'text/csv' })
  const bulk = '/v4/address/validate/bulk/audited'
  const preview = '/v4/address/validate/preview/audited-too'
  const list = `/v3/lists/checked@${NAME}/validate`
  const made = (id: string, request: string, action: string, status: number, form?: CallOptions['form']) =>
    plan(
      id,
      request,
      { action, subject: /audited\S*?(?=\/|$)/.exec(request)?.[0] ?? '', status },
      form ? { form } : {},
    )
  return [
    made('createValidationJob', `POST ${bulk}`, 'validation-job.create', 202, { file }),
    made('deleteValidationJob', `DELETE ${bulk}`, 'validation-job.delete', 200),
    made('createValidationPreview', `POST ${preview}`, 'validation-preview.create', 202, { file }),
    made('promoteValidationPreview', `PUT ${preview}`, 'validation-preview.promote', 200),
    made('deleteValidationPreview', `DELETE ${preview}`, 'validation-preview.delete', 404),
    plan('validateList', `POST ${list}`, {
      action: 'list.validate',
      subject: `checked@${NAME}`,
      status: 404,
    }),
    plan('deleteListValidation', `DELETE ${list}`, {
      ...{ action: 'list-validation.delete', subject: `checked@${NAME}`, status: 404 },
    }),
    plan(
      'shareFigure',
      'POST /sendwright/v1/shared-figures',
      { action: 'shared-figure.create', subject: '{figure}', given: { title: 'Audited', days: 3 } },
      {
        json: {
          ...{ title: 'Audited', days: 3 },
          query: { dimensions: ['time'], metrics: ['delivered_count'], filter: { AND: [] } },
        },
      },
    ),
    plan('revokeSharedFigure', 'DELETE /sendwright/v1/shared-figures/audited', {
      ...{ action: 'shared-figure.revoke', subject: 'audited', status: 404 },
    }),
    plan(
      'createSeedList',
      'POST /v4/inbox/seedlists',
      { action: 'seed-list.create', subject: '' },
      { form: { name: 'audited' } },
    ),
    made('updateSeedList', 'PUT /v4/inbox/seedlists/audited', 'seed-list.update', 404),
    made('deleteSeedList', 'DELETE /v4/inbox/seedlists/audited', 'seed-list.delete', 404),
    plan(
      'runPlacementTest',
      'POST /v4/inbox/tests',
      { action: 'placement-test.run', subject: '' },
      { json: { from: `a@${NAME}`, subject: PLANTED } },
    ),
    made('deletePlacementResult', 'DELETE /v4/inbox/results/audited', 'placement-result.delete', 404),
    made('updatePlacementSharing', 'PUT /v4/inbox/sharing/audited', 'placement-sharing.update', 404, {
      enabled: 'yes',
    }),
  ]
}

function listCalls(): Planned[] {
  const list = `staff@${NAME}`
  const path = `/v3/lists/${list}`
  const members = [{ address: 'c@example.org', vars: { note: PLANTED } }]
  const csv = new File([`address,name\nd@example.org,${PLANTED}\n`], 'members.csv', { type: 'text/csv' })
  return [
    plan(
      'createList',
      'POST /v3/lists',
      { action: 'list.create', subject: list, given: { address: HIDDEN, access_level: 'members' } },
      { form: { address: list, access_level: 'members' } },
    ),
    plan(
      'updateList',
      `PUT ${path}`,
      { action: 'list.update', subject: list, given: { description: HIDDEN } },
      { form: { description: PLANTED } },
    ),
    plan(
      'updateListConsent',
      `PUT /sendwright/v1/lists/${list}/consent`,
      { action: 'list-consent.update', subject: list, given: { title: 'News', confirm: 'no' } },
      { form: { title: 'News', confirm: 'no' } },
    ),
    plan(
      'addMember',
      `POST ${path}/members`,
      {
        action: 'member.add',
        subject: list,
        given: { address: 'a@example.org', vars: HIDDEN, upsert: 'yes' },
      },
      { form: { address: 'a@example.org', vars: `{"note":"${PLANTED}"}`, upsert: 'yes' } },
    ),
    plan(
      'updateMember',
      `PUT ${path}/members/a@example.org`,
      { action: 'member.update', subject: `${list}/a@example.org`, given: { name: HIDDEN } },
      { form: { name: PLANTED } },
    ),
    plan(
      'addMembersJson',
      `POST ${path}/members.json`,
      { action: 'members-json.add', subject: list, given: { members: HIDDEN } },
      { form: { members: JSON.stringify(members) } },
    ),
    plan(
      'addMembersCsv',
      `POST ${path}/members.csv`,
      { action: 'members-csv.add', subject: list, given: { members: HIDDEN } },
      { form: { members: csv } },
    ),
    plan('deleteMember', `DELETE ${path}/members/a@example.org`, {
      action: 'member.delete',
      subject: `${list}/a@example.org`,
    }),
    plan('deleteList', `DELETE ${path}`, { action: 'list.delete', subject: list }),
  ]
}

function routeCalls(): Planned[] {
  const url = `https://${PLANTED}:${PLANTED}@192.0.2.1/in`
  const expression = 'catch_all()'
  return [
    plan(
      'createRoute',
      'POST /v3/routes',
      {
        action: 'route.create',
        subject: '{route}',
        given: { priority: '1', description: HIDDEN, expression, action: HIDDEN },
      },
      { form: { priority: '1', description: PLANTED, expression, action: `forward("${url}")` } },
    ),
    plan(
      'updateRoute',
      'PUT /v3/routes/{route}',
      { action: 'route.update', subject: '{route}', given: { action: HIDDEN } },
      { form: { action: `store(notify="${url}")` } },
    ),
    plan('deleteRoute', 'DELETE /v3/routes/{route}', { action: 'route.delete', subject: '{route}' }),
  ]
}

function suppressionCalls(kind: string): Planned[] {
  const name = kind[0]?.toUpperCase() + kind.slice(1)
  const path = `/v3/${NAME}/${kind}`
  const file = new File(['address\nb@example.org\n'], 'list.csv', { type: 'text/csv' })
  return [
    plan(
      `add${name}`,
      `POST ${path}`,
      { action: `${kind}.add`, subject: NAME },
      { form: { address: 'a@example.org' } },
    ),
    plan(`remove${name}`, `DELETE ${path}/a@example.org`, { action: `${kind}.remove`, subject: NAME }),
    plan(
      `import${name}`,
      `POST ${path}/import`,
      { action: `${kind}.import`, subject: NAME, status: 202 },
      { form: { file } },
    ),
    plan(`clear${name}`, `DELETE ${path}`, { action: `${kind}.clear`, subject: NAME }),
  ]
}

function tagCalls(): Planned[] {
  const described = { form: { description: PLANTED } }
  const json = { tag: 'sale', description: PLANTED }
  const onTag = (action: string) => ({ action, subject: `${NAME}/sale` })
  return [
    plan(
      'updateTag',
      `PUT /v3/${NAME}/tag?tag=sale`,
      { ...onTag('tag.update'), given: { tag: 'sale', description: HIDDEN } },
      described,
    ),
    plan(
      'updateTagByPath',
      `PUT /v3/${NAME}/tags/sale`,
      { ...onTag('tag.update'), given: { description: HIDDEN } },
      described,
    ),
    plan(
      'updateAccountTag',
      'PUT /v1/analytics/tags',
      { action: 'account-tag.update', subject: 'sale', given: { tag: 'sale', description: HIDDEN } },
      { json },
    ),
    plan('deleteTag', `DELETE /v3/${NAME}/tag?tag=sale`, onTag('tag.delete')),
    plan('deleteTagByPath', `DELETE /v3/${NAME}/tags/sale`, onTag('tag.delete')),
    plan(
      'deleteAccountTag',
      'DELETE /v1/analytics/tags',
      { action: 'account-tag.delete', subject: 'sale', given: { tag: 'sale' }, status: 400 },
      { json: { tag: 'sale' } },
    ),
  ]
}

function otherCalls(): Planned[] {
  const filter = { domain: NAME }
  return [
    plan(
      'setSuppressionPolicy',
      `PUT /sendwright/v1/domains/${NAME}/suppression-policy`,
      { action: 'suppression-policy.set', subject: NAME },
      { form: { soft_bounces_to_suppress: '3' } },
    ),
    plan(
      'setRetention',
      'PUT /sendwright/v1/retention',
      { action: 'retention.set', subject: '' },
      { form: { messages: '2' } },
    ),
    plan(
      'setDomainRetention',
      `PUT /sendwright/v1/domains/${NAME}/retention`,
      { action: 'retention.set', subject: NAME },
      { form: { messages: '2' } },
    ),
    plan(
      'runQueueAction',
      'POST /sendwright/v1/queue/actions',
      { action: 'queue.act', subject: '', given: { action: 'pause', filter, dry_run: true } },
      { json: { action: 'pause', filter, dry_run: true } },
    ),
    plan(
      'moveScheduled',
      'PATCH /sendwright/v1/scheduled/none',
      { action: 'scheduled.move', subject: 'none', status: 404 },
      { form: { deliverytime: String(Math.floor(Date.now() / 1000) + 3600) } },
    ),
    plan('cancelScheduled', 'DELETE /sendwright/v1/scheduled/none', {
      action: 'scheduled.cancel',
      subject: 'none',
      status: 404,
    }),
    plan('dropQueue', `DELETE /v3/${NAME}/envelopes`, { action: 'queue.drop', subject: NAME }),
    plan(
      'replaceInboxFaults',
      'PUT /sendwright/v1/inbox/faults',
      { action: 'inbox-faults.replace', subject: '' },
      { json: [] },
    ),
    plan('checkInboxLinks', 'POST /sendwright/v1/inbox/none/link-check', {
      ...{ action: 'inbox-links.check', subject: 'none', status: 404 },
    }),
    plan(
      'replaceInboxTags',
      'PUT /sendwright/v1/inbox/none/tags',
      { action: 'inbox-tags.replace', subject: 'none', status: 404 },
      { json: { tags: [PLANTED] } },
    ),
    plan(
      'releaseInbox',
      'POST /sendwright/v1/inbox/none/release',
      { action: 'inbox.release', subject: 'none', status: 403 },
      { json: { to: [`${PLANTED}@example.org`] } },
    ),
    plan('deleteInbox', 'DELETE /sendwright/v1/inbox/none', {
      action: 'inbox.delete',
      subject: 'none',
      status: 404,
    }),
    plan('clearInbox', 'DELETE /sendwright/v1/inbox', { action: 'inbox.clear', subject: '' }),
    plan(
      'copyAccountTemplate',
      'PUT /v4/templates/none/copy',
      { action: 'account-template.copy', subject: 'none', status: 404 },
      { json: { requests: [{ account_id: 'none', name: 'x' }] } },
    ),
    ...tagCalls(),
    plan('deleteDomain', `DELETE /v3/domains/${NAME}`, { action: 'domain.delete', subject: NAME }),
  ]
}

function alertCalls(receiver: string): Planned[] {
  const path = '/v1/thresholds/alerts/send'
  const values = { metric: 'delivered_rate', comparator: '<', limit: '.9', dimension: 'ip', period: '2h' }
  const json = { name: 'late', ...values, description: PLANTED }
  const row = { subject: 'late', given: { name: 'late', ...values } }
  const setting = {
    event_type: 'send_alert',
    channel: 'webhook',
    settings: { url: `http://u:${PASSWORD}@${receiver}/alerts?token=${PLANTED}` },
  }
  const given = { event_type: 'send_alert', channel: 'webhook' }
  const settings = '/v1/alerts/settings/events'
  return [
    plan('createAlert', `POST ${path}`, { action: 'alert.create', ...row, subject: '{alert}' }, { json }),
    plan('replaceAlert', `PUT ${path}/late`, { action: 'alert.replace', ...row }, { json }),
    plan('deleteAlert', `DELETE ${path}/late`, { action: 'alert.delete', subject: 'late' }),
    plan(
      'addAlertSetting',
      `POST ${settings}`,
      { action: 'alert-setting.add', subject: '{setting}', given },
      { json: setting },
    ),
    plan(
      'changeAlertSetting',
      `PUT ${settings}/{setting}`,
      { action: 'alert-setting.change', subject: '{setting}', given },
      { json: setting },
    ),
    plan('deleteAlertSetting', `DELETE ${settings}/{setting}`, {
      action: 'alert-setting.delete',
      subject: '{setting}',
    }),
    ...channelCalls(receiver),
    ...usageLimitCalls(),
    plan(
      'createExport',
      'POST /v3/exports',
      { action: 'export.create', subject: '{export}' },
      { form: { url: `/v3/${NAME}/bounces?term=${PLANTED}` } },
    ),
  ]
}

function usageLimitCalls(): Planned[] {
  const path = '/v1/thresholds/limits'
  const values = { metric: 'seed_test_count', comparator: '<', limit: '9', dimension: 'domain', period: '2h' }
  const json = { name: 'cap', ...values, description: PLANTED }
  const row = { subject: 'cap', given: { name: 'cap', ...values } }
  return [
    plan(
      'createUsageLimit',
      `POST ${path}`,
      { action: 'usage-limit.create', ...row, subject: '{limit}' },
      { json },
    ),
    plan('replaceUsageLimit', `PUT ${path}/cap`, { action: 'usage-limit.replace', ...row }, { json }),
    plan('deleteUsageLimit', `DELETE ${path}/cap`, { action: 'usage-limit.delete', subject: 'cap' }),
  ]
}

function channelCalls(receiver: string): Planned[] {
  const event_type = 'ip_listed'
  const given = { event_type }
  const workspace = { token: PLANTED, team_id: 'T1', team_name: 'Team' }
  return [
    plan(
      'testAlertEmail',
      'POST /v1/alerts/email/test',
      { action: 'alert-email.test', subject: '', given },
      {
        json: { event_type, emails: ['ops@example.org'] },
      },
    ),
    plan(
      'testAlertWebhook',
      'POST /v1/alerts/webhooks/test',
      { action: 'alert-webhook.test', subject: '', given },
      {
        json: { event_type, url: `http://u:${PASSWORD}@${receiver}/alerts?token=${PLANTED}` },
      },
    ),
    plan(
      'testAlertSlack',
      'POST /v1/alerts/slack/test',
      { action: 'alert-slack.test', subject: '', given, status: 400 },
      {
        json: { event_type },
      },
    ),
    plan(
      'setSlackWorkspace',
      'PUT /v1/alerts/settings/slack',
      { action: 'slack-workspace.set', subject: '', given: { team_id: 'T1', team_name: 'Team' } },
      { json: workspace },
    ),
    plan('deleteSlackWorkspace', 'DELETE /v1/alerts/settings/slack', {
      action: 'slack-workspace.delete',
      subject: '',
    }),
    plan('revokeSlackToken', 'DELETE /v1/alerts/slack/oauth', { action: 'slack-token.revoke', subject: '' }),
    plan('resetAlertSigningKey', 'PUT /v1/alerts/settings/webhooks/signing_key', {
      action: 'alert-signing-key.reset',
      subject: '',
    }),
  ]
}

function dnsCalls(receiver: string): Planned[] {
  const given = { kind: 'desec', api_url: `http://${receiver}/` }
  const changes = `/sendwright/v1/domains/${NAME}/dns-changes`
  const provider = (verb: string, more: object = {}) => ({
    ...{ action: `dns-provider.${verb}`, subject: 'dns', ...more },
  })
  return [
    plan('putDnsProvider', 'PUT /sendwright/v1/dns-providers/dns', provider('put', { given }), {
      json: { ...given, secret: PLANTED },
    }),
    plan(
      'createDnsChange',
      `POST ${changes}`,
      { action: 'dns-change.create', subject: NAME, given: { provider: 'none', dry_run: true }, status: 404 },
      { json: { provider: 'none', dry_run: true } },
    ),
    plan(
      'undoDnsChange',
      `POST ${changes}/none/undo`,
      {
        ...{ action: 'dns-change.undo', subject: `${NAME}/none`, status: 404 },
      },
      { json: {} },
    ),
    plan('deleteDnsProvider', 'DELETE /sendwright/v1/dns-providers/dns', provider('delete')),
  ]
}

function sinkCalls(): Planned[] {
  const path = '/sendwright/v1/event-sinks/broker'
  const given = { kind: 'nats', servers: ['127.0.0.1:1'], topic: 'mail', user: 'u' }
  const one = (verb: string, more: object = {}) => ({
    ...{ action: `event-sink.${verb}`, subject: 'broker', ...more },
  })
  return [
    plan('putEventSink', `PUT ${path}`, one('put', { given: { ...given, servers: '127.0.0.1:1' } }), {
      json: { ...given, secret: PLANTED },
    }),
    plan('deleteEventSink', `DELETE ${path}`, one('delete')),
  ]
}

function relayCalls(): Planned[] {
  const path = '/sendwright/v1/relays'
  const given = { host: '127.0.0.1', port: 1, tls: 'none' }
  const json = { ...given, login: { mechanism: 'plain', username: 'u', password: PLANTED } }
  const rules = { items: [{ match: {}, levels: [[{ relay: 'direct' }]] }] }
  const arn = 'arn:aws:sns:eu-west-1:123456789012:bounces'
  const topic = `/sendwright/v1/sns/topics/${encodeURIComponent(arn)}`
  const one = (action: string, more: object = {}) => ({ action, subject: 'isp', ...more })
  return [
    plan('createRelay', `POST ${path}`, one('relay.create', { given }), { json: { name: 'isp', ...json } }),
    plan('replaceRelay', `PUT ${path}/isp`, one('relay.replace', { given }), { json }),
    plan('pauseRelay', `PUT ${path}/isp/pause`, one('relay.pause', { given: { reason: 'tests' } }), {
      form: { reason: 'tests' },
    }),
    plan('resumeRelay', `DELETE ${path}/isp/pause`, one('relay.resume')),
    plan('testRelay', `POST ${path}/isp/test`, one('relay.test'), {
      json: { from: `a@${NAME}`, to: 'b@example.org' },
    }),
    plan('deleteRelay', `DELETE ${path}/isp`, one('relay.delete')),
    plan('replaceRelayRules', 'PUT /sendwright/v1/relay-rules', one('relay-rules.replace', { subject: '' }), {
      json: rules,
    }),
    plan('releaseContentHold', 'POST /sendwright/v1/content-holds/none/release', {
      ...{ action: 'content-hold.release', subject: 'none', status: 404 },
    }),
    plan('dropContentHold', 'DELETE /sendwright/v1/content-holds/none', {
      ...{ action: 'content-hold.drop', subject: 'none', status: 404 },
    }),
    plan('addSnsTopic', `PUT ${topic}`, { action: 'sns-topic.add', subject: arn }),
    plan('deleteSnsTopic', `DELETE ${topic}`, { action: 'sns-topic.delete', subject: arn }),
  ]
}

function reputationCalls(receiver: string): Planned[] {
  const path = '/sendwright/v1/reputation-sources'
  const url = `http://${receiver}/`
  const google = { grant: 'refresh_token', client_id: 'client', token_url: url, api_url: url }
  const snds = { api_url: url }
  const secrets = { client_secret: PLANTED, refresh_token: PLANTED }
  const row = (name: string, verb: string, given?: object) => ({
    ...{ action: `${name}-reputation-source.${verb}`, subject: '' },
    ...(given && { given: { ...given } }),
  })
  return [
    plan('replaceGoogleReputationSource', `PUT ${path}/google`, row('google', 'replace', google), {
      json: { ...google, ...secrets },
    }),
    plan('replaceSndsReputationSource', `PUT ${path}/snds`, row('snds', 'replace', snds), {
      json: { ...snds, key: PLANTED },
    }),
    ...['Google', 'Snds'].flatMap((name) => {
      const word = name.toLowerCase()
      return [
        plan(`test${name}ReputationSource`, `POST ${path}/${word}/test`, row(word, 'test')),
        plan(`delete${name}ReputationSource`, `DELETE ${path}/${word}`, row(word, 'delete')),
      ]
    }),
  ]
}

async function start(t: TestContext, database: 'sqlite' | 'postgres') {
  const dns: DnsServer = await createDnsServer()
  const receiver = await createReceiver()
  t.after(async () => {
    await dns.close()
    await receiver.close()
  })
  const service = await startTestService(
    t,
    {
      SENDWRIGHT_ALLOW_NETWORKS: '127.0.0.0/8,192.0.2.0/24',
      SENDWRIGHT_DNS: `${dns.host}:${dns.port}`,
      SENDWRIGHT_IPS: IPS,
    },
    { database },
  )
  return { service, receiver }
}

/** What was created, for `{name}` in later paths and subjects. */
const idsOf = ({ body }: Answer): [string, string][] =>
  Object.entries({
    key: body?.key?.id,
    figure: body?.query !== undefined ? body.id : undefined,
    subaccount: body?.subaccount?.id,
    webhook: body?.webhook_id,
    route: body?.route?.id,
    user: body?.is_master !== undefined ? body.id : undefined,
    pool: body?.pool_id,
    alert: body?.alert_channels !== undefined ? body.id : undefined,
    setting: body?.channel !== undefined ? body.id : undefined,
    limit: body?.metric === 'seed_test_count' ? body.id : undefined,
    export: body?.expires_at !== undefined && body.title === undefined ? body.id : undefined,
    [`${body?.task?.kind}_task`]: body?.task?.id,
  }).filter(([, id]) => typeof id === 'string')

/** Secrets that a response shows once. */
function secretsOf({ body }: Answer): string[] {
  const found = [
    body?.key?.secret ?? body?.key,
    body?.http_signing_key,
    body?.url,
    ...Object.values(body?.credentials ?? {}),
  ]
  return found.filter((value): value is string => typeof value === 'string')
}

eachDatabase((database) => {
  test('every operation that changes something leaves one row and no secret', async (t) => {
    const { service, receiver } = await start(t, database)
    const calls = [
      ...domainCalls(),
      ...accountCalls(),
      ...userCalls(),
      ...subaccountCalls(),
      ...ipCalls(),
      ...webhookCalls(`${receiver.host}:${receiver.port}`),
      ...alertCalls(`${receiver.host}:${receiver.port}`),
      ...dnsCalls(`${receiver.host}:${receiver.port}`),
      ...relayCalls(),
      ...sinkCalls(),
      ...reputationCalls(`${receiver.host}:${receiver.port}`),
      ...templateCalls('domain'),
      ...templateCalls('account'),
      ...listCalls(),
      ...routeCalls(),
      ...validationCalls(),
      ...['bounces', 'complaints', 'unsubscribes', 'whitelists'].flatMap(suppressionCalls),
      ...otherCalls(),
    ]
    const keyId = (await service.call('GET', '/v1/keys')).headers.get('x-service-key-id')
    const secrets = [PLANTED]
    const done = new Map<string, Planned>()
    const refused: string[] = []
    const ids = new Map<string, string>()
    const named = (text: string) => text.replace(/\{(\w+)\}/, (_, name) => ids.get(name) ?? '')
    for (const planned of calls) {
      const { id, method, path, options, status = 200 } = planned
      const headers = Object.entries(options?.headers ?? {}).map(([name, value]) => [name, named(value)])
      const sent = { ...options, headers: Object.fromEntries(headers) }
      const answer = await service.call(method, named(path), sent)
      for (const [name, value] of idsOf(answer)) ids.set(name, value)
      if (answer.status !== status) refused.push(`${id}: ${answer.status} ${answer.text}`)
      secrets.push(...secretsOf(answer))
      done.set(answer.headers.get('x-service-request-id') as string, planned)
    }
    assert.deepEqual(refused, [])
    const rows = await rowsOf(service)
    for (const [requestId, { id, action, subject, given, status = 200 }] of done) {
      const own = rows.filter((row) => row.request_id === requestId)
      assert.equal(own.length, 1, `${id} left ${own.length} rows`)
      const [row] = own as [Row]
      assert.deepEqual([id, row.action, row.subject, row.status], [id, action, named(subject), status])
      assert.deepEqual([row.key_id, row.remote_address.slice(0, 4)], [keyId, '127.'])
      if (given) assert.deepEqual([id, row.detail['given']], [id, given])
    }
    assert.equal(rows.length, done.size, 'nothing else is in it')
    const text = JSON.stringify(rows)
    for (const secret of secrets) assert.ok(!text.includes(secret), `the log holds ${secret}`)

    const called = new Set(calls.map(({ id }) => id))
    const { paths } = (await service.call('GET', '/openapi.json')).body
    const operations = Object.values(paths as Record<string, Record<string, never>>).flatMap(Object.entries)
    const unrecorded: Record<string, string> = {}
    const untried: string[] = []
    for (const [method, { operationId, 'x-alias-of': main, 'x-audit': note }] of operations as [
      string,
      { operationId: string; 'x-alias-of'?: string; 'x-audit'?: { recorded: boolean; reason: string } },
    ][]) {
      if (main !== undefined || SESSION_OPERATIONS.has(operationId)) continue
      assert.equal(note !== undefined, method !== 'get', `${operationId} says whether it is recorded`)
      if (note?.recorded === false) unrecorded[operationId] = note.reason
      if (note?.recorded && !called.has(operationId)) untried.push(operationId)
    }
    assert.deepEqual(untried, [], 'these are to be tried above')
    assert.deepEqual(unrecorded, NOT_RECORDED)
  })

  test('sign-ins, sign-outs and changes by a session are in the log', async (t) => {
    const { service } = await start(t, database)
    const origin = { origin: service.url }
    const signedIn = await service.call('POST', '/sendwright/v1/session', {
      form: { key: service.key },
      key: null,
      headers: origin,
    })
    assert.equal(signedIn.status, 200, signedIn.text)
    const link = (await service.call('POST', '/sendwright/v1/login-links')).body.url as string
    const redeemed = await service.call('GET', new URL(link).pathname, { key: null })
    assert.equal(redeemed.status, 200)
    const session = { key: null, headers: { ...origin, cookie: cookieOf(signedIn) } }
    const made = await service.call('POST', '/v3/lists', {
      ...session,
      form: { address: `l@${service.domain}` },
    })
    assert.equal(made.status, 200, made.text)
    assert.equal((await service.call('DELETE', '/sendwright/v1/session', session)).status, 200)
    // A session that has ended signs out without a row, as nothing changes.
    assert.equal((await service.call('DELETE', '/sendwright/v1/session', session)).status, 200)
    const rows = (await rowsOf(service)).reverse()
    const keyId = (await service.call('GET', '/v1/keys')).headers.get('x-service-key-id')
    const [byKey, , byLink] = rows as [Row, Row, Row]
    assert.deepEqual(
      rows.map(({ action, key_id, subject, detail }) => [action, key_id, subject, detail['by']]),
      [
        ['session.open', keyId, byKey.subject, 'key'],
        ['login-link.create', keyId, '', undefined],
        ['session.open', byLink.subject, byLink.subject, 'link'],
        ['list.create', byKey.subject, `l@${service.domain}`, undefined],
        ['session.close', byKey.subject, byKey.subject, undefined],
      ],
    )
    assert.match(byKey.subject, /^session-/)
    assert.notEqual(byKey.subject, byLink.subject)
  })

  test('actions of users before and after sign-in are in the log, without secrets', async (t) => {
    const { service } = await start(t, database)
    const email = 'logged@example.org'
    const { id, cookie } = await activeUser(service, email)
    const signedIn = cookieOf(await signIn(service, email))
    await signIn(service, email, PASSWORD)
    await post(service, 'password-resets', { email })
    const token = await mailedToken(service, email, 'Reset')
    const password = `${PASSWORD} chosen`
    assert.equal((await post(service, 'password-resets/redeem', { token, password })).status, 200)
    const again = cookieOf(await signIn(service, email, password))
    const json = { current_password: password }
    const begun = await as(service, again, 'POST', '/sendwright/v1/me/totp', json)
    assert.equal(begun.status, 200, begun.text)
    const rows = (await rowsOf(service)).reverse()
    const [, , first, second, , , third] = rows
    assert.deepEqual(
      rows.map(({ action, subject, detail }) => [
        action,
        subject,
        detail['by'] ?? null,
        detail['user'] ?? null,
      ]),
      [
        ['user.invite', id, null, null],
        ['invitation.accept', id, null, null],
        ['session.open', first?.key_id, 'invitation', id],
        ['session.open', second?.key_id, 'password', id],
        ['password-reset.request', id, null, null],
        ['password.reset', id, null, null],
        ['session.open', third?.key_id, 'password', id],
        ['own-totp.begin', '', null, null],
      ],
    )
    const ofUser = await rowsOf(service, `&user_id=${id}`)
    assert.deepEqual(ofUser.map(({ action }) => action).toSorted(), [
      ...['invitation.accept', 'own-totp.begin', 'password.reset'],
      ...['session.open', 'session.open', 'session.open'],
    ])
    const text = JSON.stringify(rows)
    for (const secret of [
      PASSWORD,
      token,
      begun.body.secret,
      ...[cookie, signedIn].map((one) => one.slice(20)),
    ])
      assert.ok(!text.includes(secret))
  })

  test('failed sign-ins of each way are summed in few rows of the account concerned', async (t) => {
    const clock = createTestClock(Date.now())
    const service = await startTestService(t, {}, { database, clock })
    const wrong = (way: 'api' | 'session' | 'link') =>
      way === 'api'
        ? service.call('GET', '/v4/domains', { key: PASSWORD })
        : way === 'session'
          ? service.call('POST', '/sendwright/v1/session', { form: { key: PASSWORD }, key: null })
          : service.call('GET', `/login/${PLANTED}`, { key: null })
    const counts = { api: 5, session: 3, link: 2 }
    for (const [way, count] of Object.entries(counts))
      for (let n = 0; n < count; n++)
        assert.ok([401, 404].includes((await wrong(way as keyof typeof counts)).status))
    for (const user of [`postmaster@${service.domain}`, `${PLANTED}@example.org`])
      await failSmtp(service, clock, user)
    assert.deepEqual(await rowsOf(service, '&action=sign-in.failed'), [], 'nothing is written in between')
    await clock.advance(60_000)
    const rows = await eventually('the rows of failures', async () => {
      const found = await rowsOf(service, '&action=sign-in.failed')
      return found.length >= 5 && found
    })
    const shown = rows.map(({ subject, detail }) => [detail['way'], subject, detail['count']])
    assert.deepEqual(shown.toSorted(), [
      ['api', '', 5],
      ['link', '', 2],
      ['session', '', 3],
      ['smtp', '', 1],
      ['smtp', `postmaster@${service.domain}`, 1],
    ])
    assert.match(rows[0]?.remote_address ?? '', /^127\./)
    assert.ok(!JSON.stringify(rows).includes(PLANTED))
  })
})

test('the log is filtered by action, key, subject and time, and its pages keep the filter', async (t) => {
  const service = await startTestService(t, {}, { database: 'postgres' })
  const { domain } = service
  const template = (name: string) =>
    service.call('POST', `/v3/${domain}/templates`, { form: { name }, headers: {} })
  for (const name of ['one', 'two', 'three']) assert.equal((await template(name)).status, 200)
  const strange = await service.call('DELETE', `/v3/${domain}/templates/a%00b`)
  assert.equal(strange.status, 404, strange.text)
  const subjects = async (query: string) => (await rowsOf(service, query)).map(({ subject }) => subject)
  const made = ['three', 'two', 'one'].map((name) => `${domain}/${name}`)
  assert.deepEqual(await subjects('&action=template.create'), made)
  assert.deepEqual(await subjects(`&subject=${domain}/two`), [`${domain}/two`])
  assert.deepEqual(await subjects('&action=template.delete'), [`${domain}/a\uFFFDb`])
  assert.deepEqual(await subjects('&key_id=nobody'), [])
  const [{ remote_address: here = '' } = {}] = await rowsOf(service)
  assert.deepEqual(await subjects(`&remote_address=${here}&action=template.create`), made)
  assert.deepEqual(await subjects('&remote_address=192.0.2.1'), [])
  assert.deepEqual(await subjects('&user_id=nobody'), [])
  const hour = (from: number) => Math.floor(Date.now() / 1000) + from * 3600
  assert.equal((await subjects(`&after=${hour(-1)}&before=${hour(1)}`)).length, 4)
  assert.deepEqual(await subjects(`&after=${hour(1)}`), [])
  assert.deepEqual(await subjects(`&before=${hour(-1)}`), [])
  const page = async (path: string) => (await service.call('GET', path)).body
  const first = await page(`/sendwright/v1/audit?limit=2&action=template.create&after=${hour(-1)}`)
  assert.equal(first.items.length, 2)
  const next = await page(first.paging.next.slice(service.config.publicUrl.length))
  assert.deepEqual(
    next.items.map(({ subject }: Row) => subject),
    [`${domain}/one`],
  )
  const actions = (await page('/sendwright/v1/audit/actions')).items
  assert.deepEqual(actions, [...new Set((await rowsOf(service)).map(({ action }) => action))].sort())
  const headers = { accept: 'text/csv' }
  const file = await service.call('GET', '/sendwright/v1/audit?limit=1&action=template.create', { headers })
  assert.match(file.headers.get('content-type') ?? '', /^text\/csv/)
  assert.deepEqual(
    file.text
      .trim()
      .split('\r\n')
      .map((line) => line.split(',').slice(1, 4).join()),
    ['action,subject,status', ...made.map((subject) => `template.create,${subject},200`)],
  )
})

/** These have their own tests below: they create and end the sessions and keys that the others use. */
const SESSION_OPERATIONS = new Set([
  ...['redeemLoginLink', 'signIn', 'signOut', 'acceptInvitation', 'requestPasswordReset', 'resetPassword'],
  // In accounts/sandbox.
  'confirmSandboxRecipient',
])

/** One wrong login over SMTP. Its reply is delayed by one second of the service's clock. */
async function failSmtp(service: TestService, clock: ReturnType<typeof createTestClock>, user: string) {
  const socket = connect(service.service.smtp.port, service.config.smtpHost)
  socket.setEncoding('utf8')
  const plain = Buffer.from(`\0${user}\0${PASSWORD}`).toString('base64')
  let replies = ''
  socket.on('data', (text: string) => {
    replies += text
  })
  socket.write(`EHLO test\r\nAUTH PLAIN ${plain}\r\nQUIT\r\n`)
  await eventually('the refusal', async () => {
    await clock.advance(1_000)
    return /^535 /m.test(replies)
  })
  socket.destroy()
}

eachStore('a row stands before the change and says when the outcome is unknown', async (store) => {
  const clock = createTestClock()
  const log = { error() {} } as never
  const audit = createAuditLog({ store, clock, log, retentionDays: 400 })
  const caller = { accountId: 'a', keyId: 'k', role: 'admin', kind: 'user', parentAccountId: 'p' } as const
  const entry = { caller, remoteAddress: '192.0.2.1', requestId: 'r', action: 'x.do', subject: '', given: {} }
  const settle = await audit.open(entry)
  const read = () => store.db.selectFrom('audit').selectAll().executeTakeFirstOrThrow()
  const before = await read()
  assert.deepEqual([before.status, before.subject, before.parent_account_id], [null, '', 'p'])
  await settle({ status: 200, made: { count: 2, id: 'new-one' } })
  const after = await read()
  assert.deepEqual([after.status, after.subject], [200, 'new-one'])
  assert.deepEqual(JSON.parse(after.detail_json), { given: {}, made: { count: 2, id: 'new-one' } })
})

eachStore('rows go once they are too old, and only those', async (store) => {
  const clock = createTestClock()
  const DAY_MS = 86_400_000
  const audit = createAuditLog({ store, clock, log: { error() {} } as never, retentionDays: 30 })
  const record = (action: string) =>
    audit.record(
      { caller: { accountId: 'a', keyId: 'k' }, remoteAddress: '192.0.2.1', requestId: 'r' },
      { action, subject: '', detail: {} },
    )
  const old = Array.from({ length: 1_100 }, () => record('old.do'))
  await Promise.all(old)
  clock.leap(29 * DAY_MS)
  await record('new.do')
  await audit.removeOld()
  const count = async () => (await store.db.selectFrom('audit').select('id').execute()).length
  assert.equal(await count(), 1_101)
  clock.leap(2 * DAY_MS)
  await audit.removeOld()
  assert.equal(await count(), 1)
})

eachStore(
  'beyond the space that rows may take the oldest go, but none of the last 30 days',
  async (store) => {
    const clock = createTestClock()
    const DAY_MS = 86_400_000
    const log = { error() {} } as never
    const audit = createAuditLog({ store, clock, log, retentionDays: 400, bytesMax: 1_000_000 })
    const record = (action: string) =>
      audit.record(
        { caller: { accountId: 'a', keyId: 'k' }, remoteAddress: '192.0.2.1', requestId: 'r' },
        { action, subject: '', detail: { given: 'x'.repeat(1_400) } },
      )
    const actions = async () => {
      const rows = await store.db.selectFrom('audit').select('action').orderBy('id').execute()
      return rows.map(({ action }) => action)
    }
    await Promise.all(Array.from({ length: 300 }, () => record('old.do')))
    clock.leap(31 * DAY_MS)
    await Promise.all(Array.from({ length: 400 }, () => record('new.do')))
    await audit.removeOld()
    const left = await actions()
    assert.ok(left.length > 450 && left.length < 550, `${left.length} rows of 2 KB are 1 MB`)
    assert.equal(left.filter((action) => action === 'new.do').length, 400)
    await Promise.all(Array.from({ length: 400 }, () => record('flood.do')))
    await audit.removeOld()
    assert.deepEqual([...new Set(await actions())], ['new.do', 'flood.do'])
    assert.equal((await actions()).length, 800, 'whoever floods the log removes nothing of the last 30 days')
  },
)
