/**
 * Tests that prove each event, from its fields to the path from the outside, and each operation of bounce
 * classification and statistics. Values name a test file and the tests in it.
 */
import type { EventName } from '../../src/watching/events/event.ts'
import type { Proof } from './templates-lists-suppressions.ts'

const FIELDS = 'src/watching/events/event.test.ts'
const PAYLOADS = 'src/watching/webhooks/payload.test.ts'
const REPLIES = 'test/scenarios/webhooks.test.ts'
const FEEDBACK = 'test/scenarios/feedback.test.ts'
const VISITS = 'test/scenarios/visits.test.ts'
const RETURNED = 'test/scenarios/returned-mail.test.ts'
const STOPS = 'test/scenarios/suppressions.test.ts'
const REFUSALS = 'test/scenarios/bounces.test.ts'
const TLS = 'src/mail/deliver/tls-matrix.test.ts'
const ROUTES = 'src/receiving/bounces/routes.test.ts'
const STATISTICS = 'src/receiving/bounces/statistics.test.ts'
const TAGS = 'src/watching/tags/routes.test.ts'

/** There are three kinds of `failed`. */
export type Happening =
  | Exclude<EventName, 'failed'>
  | 'failed, temporary'
  | 'failed, permanent'
  | 'failed, late'

export interface EventProof {
  /** Exactly the fields of the contract. */
  fields: Proof
  /** The body of its webhook; null: it has none (webhooks.md rule 10). */
  payload: Proof | null
  /** From the outside to the event, its signed webhook if it has one, and the stored message. */
  scenario: Proof
}

const ANSWERED: Proof = [
  REPLIES,
  'each reply of a receiving server becomes its webhook, signed, with the stored message',
]
const DONE: Proof = [
  FEEDBACK,
  'actions of recipients and their servers reach event, webhook, list and next mail',
]
const TAGS_OF_DOMAIN: Proof = [TAGS, 'tags of a domain']
const TAGS_OF_ACCOUNT: Proof = [TAGS, 'tags of an account']
const GROUPED: Proof = [
  'src/watching/metrics/stats/routes.test.ts',
  'figures are filtered, grouped and summed up',
]
const UNTOLD: Proof = [
  FEEDBACK,
  'events without a webhook are still listed: rejected mail, and uploads to a list',
]
const ROUTED: Proof = [
  'test/scenarios/received-mail.test.ts',
  'a message is posted with every field, signed, and can be read',
]
const SAMPLE: Proof = [PAYLOADS, 'the sample of ${type} has the members of its type, of their JSON types']
const READ: Proof = [PAYLOADS, 'the webhook of ${name} has what the common receivers read']
const FAILED: Proof = [FIELDS, 'failed for now and for good, and by a late bounce']
const VISITED: Proof = [FIELDS, 'opened, clicked and unsubscribed']
const UPLOADED: Proof = [FIELDS, 'the events of a mailing list upload']

export const EVENT_PROOFS: Record<Happening, EventProof> = {
  accepted: {
    fields: [FIELDS, 'accepted', 'accepted with everything that may be known'],
    payload: SAMPLE,
    scenario: ANSWERED,
  },
  delivered: { fields: [FIELDS, 'delivered'], payload: SAMPLE, scenario: ANSWERED },
  'failed, temporary': { fields: FAILED, payload: SAMPLE, scenario: ANSWERED },
  'failed, permanent': { fields: FAILED, payload: SAMPLE, scenario: ANSWERED },
  'failed, late': {
    fields: [
      'src/receiving/bounces/reports.test.ts',
      'a bounce is an event of its delivery, with its followers notified, and an entry if the mailbox is gone',
    ],
    payload: READ,
    scenario: DONE,
  },
  rejected: {
    fields: [FIELDS, 'rejected names no recipient and no template'],
    payload: null,
    scenario: UNTOLD,
  },
  opened: { fields: VISITED, payload: READ, scenario: DONE },
  clicked: { fields: VISITED, payload: READ, scenario: DONE },
  unsubscribed: { fields: VISITED, payload: READ, scenario: DONE },
  complained: { fields: [FIELDS, 'complained'], payload: READ, scenario: DONE },
  stored: { fields: [FIELDS, 'stored'], payload: null, scenario: ROUTED },
  list_member_uploaded: { fields: UPLOADED, payload: null, scenario: UNTOLD },
  list_member_upload_error: { fields: UPLOADED, payload: null, scenario: UNTOLD },
  list_uploaded: { fields: UPLOADED, payload: null, scenario: UNTOLD },
}

/** Different ways to the same event, each from the outside to the next mail. */
export const WAYS: Record<string, Proof> = {
  opened: [FEEDBACK, 'opened'],
  clicked: [FEEDBACK, 'clicked'],
  'unsubscribed by link': [FEEDBACK, 'unsubscribed by link'],
  'unsubscribed by one click': [FEEDBACK, 'unsubscribed by one click'],
  'unsubscribed by mail': [FEEDBACK, 'unsubscribed by mail'],
  complained: [FEEDBACK, 'complained'],
  'delayed bounce': [FEEDBACK, 'delayed bounce'],
}

const CLASSIFIED: Proof = [REFUSALS, 'a refusal is classified, counted, shown and reported']
const STOPPED: Proof = [
  STOPS,
  'each list stops to, cc and bcc alike, and no other recipient',
  'in the order bounce, unsubscribe, complaint',
]

/** Reasons and codes of failed events (events.md section 2); null: nothing fails in this way yet. */
export const REASON_PROOFS: Record<string, Proof | null> = {
  bounce: CLASSIFIED,
  generic: CLASSIFIED,
  espblock: CLASSIFIED,
  blacklisted: CLASSIFIED,
  greylisted: CLASSIFIED,
  'old 602': [
    'test/scenarios/retry-schedule.test.ts',
    'attempts follow after 10, 15, 30 minutes, 1, 2 and 4 hours; then the message is too old',
  ],
  'suppress-bounce 605': STOPPED,
  'suppress-unsubscribe 606': STOPPED,
  'suppress-complaint 607': STOPPED,
  'generic 498': [
    'test/scenarios/destinations.test.ts',
    'DNS failures: the right class in each of fourteen cases',
  ],
  'generic 499': [
    'test/scenarios/connection-drops.test.ts',
    'a broken connection defers the message; only after the final dot can it arrive twice',
  ],
  'generic 680': [TLS, "${name}; peer's TLS: ${peer}: ${expected}"],
  // Routes: forwards and notices.
  'generic 406': null,
  'loop 554': null,
}

const SHOWN: Proof = [REFUSALS, 'a refusal is classified, counted, shown and reported']
const COUNTED: Proof = [REFUSALS, 'statistics count final failures, suppressed ones not']
const EMPTY: Proof = [ROUTES, 'before any failure']
const FAULTS: Proof = [ROUTES, 'errors']
const ROLES: Proof = [ROUTES, 'every role but sending reads']
const ACCOUNTS: Proof = [STATISTICS, 'figures cover final failures of the last 7 days of the right accounts']
const CONFIG: Proof = [ROUTES, 'entities and rules']
const METRICS: Proof = [
  STATISTICS,
  'metrics: every dimension, every comparator, deliveries along with failures',
]
const METRICS_FAULTS: Proof = [
  'src/receiving/bounces/metrics-query.test.ts',
  'a parameter that is not understood gets a 400 that names it',
]
const POLICY: Proof = [
  'src/sending/suppressions/routes.test.ts',
  'the policy is read, set in parts, and held to its ranges',
]
const FIGURES: Proof = [
  'src/watching/metrics/stats/routes.test.ts',
  'every interval is there before anything happened',
  'mail is counted for the account, its domain and its tags',
  'the public JavaScript client reads them',
]
const ONCE: Proof = [
  'src/watching/metrics/counting.test.ts',
  'a step whose commit was not acknowledged is not counted again',
  'several processes count events while they are written, each of them once',
  'a unique open is one per message, recipient and kind of bot in seven days',
]
const FIGURES_FAULTS: Proof = [
  'src/watching/metrics/stats/routes.test.ts',
  'errors',
  'every role but sending reads',
]
const RANGES: Proof = [
  'src/watching/metrics/stats/stats-query.test.ts',
  'range and resolution follow from start, end and duration',
  'what is not understood is a 400 with the text of the contract',
]
const LINKS = 'test/scenarios/tracked-mail.test.ts'

const HOSTED_POLICY: Proof = [
  'src/sending/certificates/hosted-policies.test.ts',
  'a policy is served with a certificate of its own, and its record names the policy',
]

/** Operations by id: their effects and their errors. */
export const OPERATION_PROOFS: Record<string, { does: readonly Proof[]; fails: readonly Proof[] }> = {
  listBounceStatistics: { does: [SHOWN, COUNTED, EMPTY, ACCOUNTS], fails: [FAULTS, ROLES] },
  listBouncesPerDomain: { does: [COUNTED, EMPTY, ACCOUNTS], fails: [FAULTS] },
  listBouncesPerEntity: { does: [COUNTED, EMPTY, ACCOUNTS], fails: [FAULTS] },
  listBouncesPerRule: { does: [COUNTED, EMPTY, ACCOUNTS], fails: [FAULTS, ROLES] },
  listBounceEvents: { does: [FAULTS], fails: [ROLES] },
  listBounceEntities: { does: [CONFIG], fails: [ROLES] },
  listBounceRules: {
    does: [
      CONFIG,
      [
        'src/receiving/bounces/rules.test.ts',
        "an operator's rules come before ours that prove as much; ours can be switched off or replaced",
      ],
    ],
    fails: [ROLES],
  },
  readBounceGroup: { does: [CONFIG], fails: [CONFIG] },
  readBounceMetrics: {
    does: [
      [REFUSALS, 'metrics count failures of both kinds and deliveries'],
      METRICS,
      EMPTY,
      [ROUTES, 'the public JavaScript client asks for metrics'],
    ],
    fails: [METRICS_FAULTS, FAULTS, ROLES, [STATISTICS, 'too many groups are refused, not cut off']],
  },
  readSuppressionPolicy: { does: [POLICY], fails: [POLICY] },
  setSuppressionPolicy: {
    does: [
      POLICY,
      [
        REFUSALS,
        'a full mailbox is retried, and creates no record when the mail is too old, unless a policy requires one',
      ],
      [
        'src/sending/suppressions/store.test.ts',
        'a policy counts bounces of each severity within its window',
      ],
    ],
    fails: [POLICY],
  },
  readAccountStats: { does: [DONE, FIGURES, ONCE], fails: [FIGURES_FAULTS, RANGES] },
  readDomainStats: { does: [DONE, FIGURES, ONCE], fails: [FIGURES_FAULTS, RANGES] },
  readTagStats: { does: [FIGURES, ONCE], fails: [FIGURES_FAULTS, RANGES] },
  readTagStatsByPath: { does: [DONE, FIGURES, ONCE], fails: [FIGURES_FAULTS, RANGES] },
  listTags: { does: [TAGS_OF_DOMAIN], fails: [TAGS_OF_DOMAIN] },
  readTag: { does: [TAGS_OF_DOMAIN], fails: [TAGS_OF_DOMAIN] },
  readTagByPath: { does: [TAGS_OF_DOMAIN], fails: [TAGS_OF_DOMAIN] },
  updateTag: { does: [TAGS_OF_DOMAIN], fails: [TAGS_OF_DOMAIN] },
  updateTagByPath: { does: [TAGS_OF_DOMAIN], fails: [TAGS_OF_DOMAIN] },
  deleteTag: { does: [TAGS_OF_DOMAIN], fails: [TAGS_OF_DOMAIN] },
  deleteTagByPath: { does: [TAGS_OF_DOMAIN], fails: [TAGS_OF_DOMAIN] },
  readTagLimit: { does: [TAGS_OF_DOMAIN], fails: [TAGS_OF_DOMAIN] },
  listAccountTags: { does: [TAGS_OF_ACCOUNT], fails: [TAGS_OF_ACCOUNT] },
  updateAccountTag: { does: [TAGS_OF_ACCOUNT], fails: [TAGS_OF_ACCOUNT] },
  deleteAccountTag: { does: [TAGS_OF_ACCOUNT], fails: [TAGS_OF_ACCOUNT] },
  readAccountTagLimits: {
    does: [
      [TAGS, 'a new tag over the limit is not described, and the account tells that its limit is reached'],
    ],
    fails: [ROLES],
  },
  readDomainsStats: { does: [GROUPED], fails: [RANGES] },
  readFilteredStats: { does: [GROUPED], fails: [RANGES] },
  readTagAggregate: { does: [GROUPED], fails: [RANGES] },
  readTagAggregateByPath: { does: [GROUPED], fails: [RANGES] },
  listTagCountries: { does: [GROUPED], fails: [RANGES] },
  listTagDevices: { does: [GROUPED], fails: [RANGES] },
  listTagProviders: { does: [GROUPED], fails: [RANGES] },
  readCountriesAggregate: { does: [GROUPED], fails: [RANGES] },
  readDevicesAggregate: { does: [GROUPED], fails: [RANGES] },
  readProvidersAggregate: { does: [GROUPED], fails: [RANGES] },
  openPixel: {
    does: [
      [LINKS, 'the links of a received mail work'],
      [
        VISITS,
        'the pixel is a transparent png, also for a bad token and for HEAD, which does not count as an open',
      ],
    ],
    fails: [[VISITS, 'other methods are refused by their path']],
  },
  followLink: {
    does: [
      [LINKS, 'the links of a received mail work'],
      [VISITS, 'HEAD redirects to the target and is not a click; a target is repeated byte for byte'],
    ],
    fails: [[VISITS, 'a redirect goes to http and https alone, and only for an authentic token']],
  },
  showUnsubscribe: {
    does: [
      [VISITS, 'R46: ten thousand fetches of unsubscribe links change nothing'],
      [
        'test/scenarios/unsubscribe-browser.test.ts',
        'unsubscribe and undo on a phone without JavaScript (${colorScheme})',
      ],
    ],
    fails: [[VISITS, 'other methods are refused by their path']],
  },
  unsubscribe: {
    does: [
      [VISITS, 'one-click works as a form of either kind, from a foreign origin, and creates one event'],
      [FEEDBACK, 'the copies of a list have its fields, and link, one-click and mail unsubscribe from it'],
    ],
    fails: [
      [
        VISITS,
        'a POST with an empty, unknown or too large body, or with its fields in the URL, changes nothing',
      ],
    ],
  },
  readPublishedPolicy: { does: [HOSTED_POLICY], fails: [HOSTED_POLICY] },
  answerAcmeChallenge: {
    does: [
      [
        'src/sending/certificates/certificates.test.ts',
        'the answer to a challenge is there for every Host, while the order runs and no longer',
      ],
    ],
    fails: [],
  },
}

/** Effects of mail to our own addresses, and what it must not do. */
export const RECEPTION_PROOFS: Record<string, Proof> = {
  'bounce, complaint, unsubscribe': [
    RETURNED,
    'a bounce, a complaint and an unsubscribe are returned: event, webhook, list, and the next mail is stopped',
  ],
  samples: [RETURNED, 'R27: every report sample gets the right class and recipient'],
  'forged and hostile': [
    RETURNED,
    'forged, repeated, hostile and misdirected mail changes nothing and is never answered by mail',
  ],
  'replies of the rule file': [
    'src/receiving/bounces/classify.test.ts',
    'every sample of the rule file is classified as its own rule',
  ],
  'doctor: return paths': [
    'src/sending/domains/names/return-paths.test.ts',
    'return-path hosts of verified domains whose mail goes elsewhere are told',
  ],
}
