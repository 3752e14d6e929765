/** Sample events of each type for the test operation (W6); fictitious, never stored, in the form of events.md. */
import { newId } from '../../base/ids.ts'
import type { WebhookType } from './types.ts'

export function samplePayload(
  type: WebhookType,
  domainName: string,
  storageUrl: string,
  nowMs: number,
): Record<string, unknown> {
  const failed = type === 'permanent_fail' || type === 'temporary_fail'
  return {
    event: failed ? 'failed' : type,
    id: newId(nowMs),
    timestamp: Math.round(nowMs * 1000) / 1_000_000,
    'log-level': type === 'permanent_fail' ? 'error' : (LOG_LEVELS[type] ?? 'info'),
    recipient: 'alice@example.com',
    'recipient-domain': 'example.com',
    tags: ['sample'],
    campaigns: [],
    'user-variables': { 'my-variable': 'sample' },
    ...TYPE_MEMBERS[type]({ domainName, storageUrl, nowMs }),
  }
}

const LOG_LEVELS: Partial<Record<WebhookType, string>> = { temporary_fail: 'warn', complained: 'warn' }

interface SampleFacts {
  domainName: string
  storageUrl: string
  nowMs: number
}

const messageId = ({ domainName }: SampleFacts) => `20260601120000.0000000000000000@${domainName}`

const message = (facts: SampleFacts) => ({
  message: {
    headers: {
      to: 'Alice <alice@example.com>',
      from: `Sender <sender@${facts.domainName}>`,
      subject: 'Sample',
      'message-id': messageId(facts),
    },
    attachments: [],
    size: 512,
  },
})

const storage = ({ domainName, storageUrl }: SampleFacts) => ({
  storage: {
    key: 'sample',
    url: `${storageUrl}/v3/domains/${domainName}/messages/sample`,
    region: 'default',
    env: 'production',
  },
})

const envelope = ({ domainName }: SampleFacts) => ({
  sender: `sender@${domainName}`,
  targets: 'alice@example.com',
  transport: 'smtp',
})

const flags = {
  'is-authenticated': true,
  'is-routed': false,
  'is-big': false,
  'is-system-test': false,
  'is-test-mode': false,
}

/** An address for documentation (RFC 5737). */
const SENDING_IP = '192.0.2.25'

const attempted = (facts: SampleFacts, status: Record<string, unknown>) => ({
  ...message(facts),
  ...storage(facts),
  envelope: { ...envelope(facts), 'sending-ip': SENDING_IP },
  flags,
  'delivery-status': {
    'attempt-no': 1,
    description: '',
    'mx-host': 'mx.example.com',
    'session-seconds': 0.25,
    tls: true,
    'certificate-verified': true,
    utf8: true,
    ...status,
  },
  'primary-dkim': `k1._domainkey.${facts.domainName}`,
  'recipient-provider': 'Other',
})

const visited = (facts: SampleFacts) => ({
  message: { headers: { 'message-id': messageId(facts) } },
  ip: '192.0.2.44',
  geolocation: { country: 'Unknown', region: 'Unknown', city: 'Unknown', timezone: 'Unknown' },
  'client-info': {
    'client-name': 'Firefox',
    'client-os': 'Linux',
    'client-type': 'browser',
    'device-type': 'desktop',
    'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
    bot: '',
  },
  'recipient-provider': 'Other',
})

const TYPE_MEMBERS: Readonly<Record<WebhookType, (facts: SampleFacts) => Record<string, unknown>>> = {
  accepted: (facts) => ({
    ...storage(facts),
    message: { ...message(facts).message, recipients: ['alice@example.com'] },
    method: 'http',
    envelope: envelope(facts),
    flags: { 'is-authenticated': true, 'is-test-mode': false },
    'originating-ip': '192.0.2.7',
  }),
  delivered: (facts) => attempted(facts, { code: 250, message: 'OK' }),
  permanent_fail: (facts) => ({
    ...attempted(facts, {
      code: 550,
      message: '5.1.1 no such user',
      'enhanced-code': '5.1.1',
      'bounce-type': 'hard',
    }),
    severity: 'permanent',
    reason: 'bounce',
  }),
  temporary_fail: (facts) => ({
    ...attempted(facts, {
      code: 450,
      message: '4.2.0 try later',
      'enhanced-code': '4.2.0',
      'retry-seconds': 600,
    }),
    severity: 'temporary',
    reason: 'generic',
  }),
  opened: (facts) => ({ ...visited(facts), 'delivered-at': Math.floor(facts.nowMs / 1000) - 60 }),
  clicked: (facts) => ({
    ...visited(facts),
    'delivered-at': Math.floor(facts.nowMs / 1000) - 60,
    url: 'https://example.com/sample',
  }),
  unsubscribed: visited,
  complained: (facts) => ({
    ...message(facts),
    ...storage(facts),
    envelope: { 'sending-ip': SENDING_IP },
    'recipient-provider': 'Other',
  }),
}
