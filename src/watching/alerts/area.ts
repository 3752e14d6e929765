/**
 * Alerts: thresholds on rates of sending, which accounts set, and the service's own checks, which tell the operator. Both
 * make hits, and hits make notices by mail, webhook and Slack.
 */

import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import type { Delivery } from '../../mail/deliver/contract.ts'
import type { AccountsArea } from '../../people/access/area.ts'
import type { SystemMail } from '../../people/users/mails.ts'
import type { AlertHitRow } from '../../platform/store/schema.ts'
import type { BouncesArea } from '../../receiving/bounces/area.ts'
import type { CertificatesArea } from '../../sending/certificates/area.ts'
import type { ContentCheckArea } from '../../sending/content-check/area.ts'
import type { Blocks } from '../../sending/ips/blocks/blocks.ts'
import type { RelaysArea } from '../../sending/relays/area.ts'
import type { KnownStandings } from '../../sending/standing/known-standings.ts'
import type { BlocklistsArea } from '../blocklists/area.ts'
import type { EventSinksArea } from '../event-sinks/area.ts'
import type { Figures } from '../metrics/figures.ts'
import type { ReputationFindings } from '../reputation/findings.ts'
import type { WebhooksArea } from '../webhooks/area.ts'
import { readSigningKey, regenerateSigningKey, signingKeysOf } from '../webhooks/signing-key.ts'
import { OWN_PREFIX } from './alert.ts'
import { accountStatements, createAlertStore } from './alert-store.ts'
import { channelRoutes } from './channel-routes.ts'
import { createHits } from './hits.ts'
import { createMailNotices, postNoticeKinds } from './notice-sending.ts'
import { createEventNotices, type EventNotices, POST_KINDS } from './notices.ts'
import { addressNamesCheck } from './own/address-names.ts'
import { blocklistCheck, listedDomainsCheck } from './own/blocklists.ts'
import {
  blockedAddressesCheck,
  certificateEndsCheck,
  contentHoldsCheck,
  diskSpaceCheck,
  dueMailCheck,
  eventSinksCheck,
  failingEndpointsCheck,
  providerRefusalsCheck,
  relayLoginsCheck,
  stoppedSendersCheck,
  uncheckedMailCheck,
} from './own/checks.ts'
import { type OwnCheck, ownCheckJob, ownCheckRoutes } from './own/own-check.ts'
import { reputationChecks } from './own/provider-reputation.ts'
import { alertRoutes, alertSettingRoutes } from './routes.ts'
import { createAlertSettings } from './settings.ts'
import { createSlack } from './slack.ts'
import { createThresholdChecks } from './threshold-checks.ts'
import {
  createUsageLimits,
  type LimitMetric,
  type UsageLimits,
  usageLimitRoutes,
  usageRetention,
} from './usage-limits.ts'

export interface AlertsArea extends Area {
  /** Hits of the service's own checks that last, oldest first. */
  triggeredOwn(): Promise<AlertHitRow[]>
  events: EventNotices
  usageLimits: UsageLimits
}

interface AlertsUses {
  userDirectory: AccountsArea['userDirectory']
  webhooks: Pick<WebhooksArea, 'posts' | 'failingEndpoints'>
  certificates: Pick<CertificatesArea, 'endingSoon'>
  bounces: Pick<BouncesArea, 'refusalsByProvider'>
  delivery: Pick<Delivery, 'progressOf'>
  blocks: Pick<Blocks, 'list'>
  relays: Pick<RelaysArea, 'failingLogins'>
  content: Pick<ContentCheckArea, 'check' | 'holds'>
  standings: Pick<KnownStandings, 'list'>
  reputation: ReputationFindings
  blocklists: Pick<BlocklistsArea, 'listings'>
  sinks: EventSinksArea['known']
  sendMail: SystemMail
  /** Null: alerts on rates are not judged. */
  figures: Figures | null
}

export function alertsArea(core: Core, uses: AlertsUses): AlertsArea {
  const { config, store, sealer, clock, log, accounts, httpClient: client, firstAccountId } = core
  const { posts } = uses.webhooks
  const alerts = createAlertStore(store)
  const parentOf = async (accountId: string) => (await accounts.byId(accountId))?.parentId ?? null
  const hits = createHits(store)
  const settings = createAlertSettings(store, sealer)
  const mail = createMailNotices({ store, clock, log, sendMail: uses.sendMail })
  const slack = createSlack({ store, sealer, client, apiUrl: config.slackApiUrl })
  const notices = {
    ...{ settings, userDirectory: uses.userDirectory, posts, slackUrl: config.slackApiUrl, clock },
    changed: () => mail.wake(),
  }
  const kinds = postNoticeKinds({
    ...{ store, sealer, clock, settings, slack, headerPrefix: config.headerPrefix },
    scheduleMs: config.webhookScheduleMs,
  })
  posts.addKind(POST_KINDS.webhook, kinds.webhook)
  posts.addKind(POST_KINDS.slack, kinds.slack)
  const thresholds =
    uses.figures &&
    createThresholdChecks({
      ...{ ...notices, store, log, alerts, hits, accounts },
      figures: uses.figures,
      minVolume: config.alertMinVolume,
    })
  const checks = ownChecks(core, uses)
  const triggeredOwn = () => hits.triggered(firstAccountId, OWN_PREFIX)
  return {
    triggeredOwn,
    events: createEventNotices(notices),
    usageLimits: createUsageLimits(core),
    operations: [
      ...alertRoutes({ alerts, hits, accounts, parentOf, clock }),
      ...alertSettingRoutes({
        ...{ settings, slack, client, clock },
        signingKey: (accountId) => readSigningKey(store, sealer, accountId),
      }),
      ...channelRoutes({
        ...{ settings, slack, client, clock, headerPrefix: config.headerPrefix, baseUrl: config.publicUrl },
        sendMail: uses.sendMail,
        signingKeys: (accountId) => signingKeysOf(store, sealer, accountId),
        resetSigningKey: (accountId) => regenerateSigningKey(store, sealer, accountId),
      }),
      ...usageLimitRoutes(createAlertStore<LimitMetric>(store, 'limits'), parentOf, clock),
      ...ownCheckRoutes({ checks, triggered: triggeredOwn }),
    ],
    jobs: [
      ...(thresholds ? [thresholds] : []),
      mail,
      usageRetention(core),
      ...checks.map((check) => ownCheckJob({ ...notices, hits, firstAccountId }, check)),
    ],
    async accountDeleted(accountId) {
      await store.commit(accountStatements(accountId))
    },
  }
}

/** In the order in which a person should look at them. */
function ownChecks({ config, store, space, resolver }: Core, uses: AlertsUses): OwnCheck[] {
  const watched = [
    blocklistCheck(uses.blocklists.listings),
    listedDomainsCheck(uses.blocklists.listings),
    addressNamesCheck(config, store, resolver),
  ]
  return [
    dueMailCheck(store, uses.delivery),
    diskSpaceCheck(space, config.freeSpaceMinBytes, config.hostname),
    providerRefusalsCheck(uses.bounces),
    blockedAddressesCheck(uses.blocks),
    stoppedSendersCheck(uses.standings),
    ...watched.filter((check) => check !== null),
    ...reputationChecks(uses.reputation),
    certificateEndsCheck(uses.certificates, config),
    failingEndpointsCheck(uses.webhooks),
    eventSinksCheck(uses.sinks),
    relayLoginsCheck(uses.relays),
    ...(uses.content.check === null ? [] : [uncheckedMailCheck(uses.content.check, config.hostname)]),
    contentHoldsCheck(uses.content.holds),
  ]
}
