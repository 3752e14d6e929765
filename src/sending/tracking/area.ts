/** Tracking: links and pixels in outgoing mail, and what recipients' visits do. */

import type { Area } from '../../area.ts'
import type { Core } from '../../core.ts'
import type { Tracker } from '../../mail/compose/tracker.ts'
import type { KnownDeliveries } from '../../mail/stored/known-deliveries.ts'
import { createJob } from '../../platform/jobs/job.ts'
import { removeRowsInPass } from '../../platform/store/account-rows.ts'
import type { Domain } from '../domains/domain.ts'
import type { ListStore } from '../lists/store.ts'
import type { TemplatesArea } from '../templates/area.ts'
import { NO_GEO, openGeo } from './geo.ts'
import { createStoredLinks, linkIdOf } from './links/links.ts'
import { createTokens, type Tokens } from './links/tokens.ts'
import { createPageTemplates, type PageTemplates } from './page-template.ts'
import { createPreferencePages } from './preferences.ts'
import { trackingSettingsRoutes } from './settings-routes.ts'
import { baseUrl, createTracker } from './tracker.ts'
import { createTrackingDirectory, topicTags } from './tracking-settings.ts'
import { createUnsubscriber } from './unsubscribe.ts'
import { unsubscribeAddresses } from './unsubscribe-addresses.ts'
import { visitRoutes } from './visit-routes.ts'
import { createVisits } from './visits.ts'

export interface TrackingArea extends Area {
  tracker: Tracker
  /** Makes the same copies and stores nothing: their links lead nowhere. */
  previewTracker: Tracker
  /** Which mail of the domain gets fields for unsubscribing with one click of its own accord. */
  unsubscribable(domain: Domain): Promise<Unsubscribable>
  tokens: Tokens
  pageTemplates: PageTemplates
  /** Scheme and host for links in mail of the domain; null: there is none. */
  linkBase(domain: Domain): Promise<string | null>
}

type Unsubscribable = 'all mail' | 'bulk mail' | 'none'

interface TrackingUses {
  known: KnownDeliveries
  lists: ListStore
  /** Whether https links to the host work now. */
  certificateActive(host: string): Promise<boolean>
  templates: Pick<TemplatesArea, 'templates' | 'renderer'>
}

const REMOVE_LINKS_EVERY_MS = 600_000

export async function trackingArea(
  core: Core,
  { known, lists, certificateActive, templates }: TrackingUses,
): Promise<TrackingArea> {
  const { config, store, domains, clock, log, sealer, recorder } = core
  const settings = createTrackingDirectory(store, clock)
  const tokens = createTokens(sealer, store.pod)
  const links = createStoredLinks(store, clock)
  const geo = config.geoDatabase === null ? NO_GEO : await openGeo(config.geoDatabase, clock, log)
  const unsubscriber = createUnsubscriber({ store, domains, lists, known, clock, recorder })
  const visits = createVisits({ store, known, geo, clock, log, recorder })
  const pageTemplates = createPageTemplates({ ...templates, log })
  const trackerParts = {
    settings,
    tokens,
    fallbackUrl: config.trackingUrl,
    tlsExternal: config.trackingTlsExternal,
    certificateActive,
  }
  return {
    tracker: createTracker({ ...trackerParts, links }),
    previewTracker: createTracker({
      ...trackerParts,
      links: { keep: async (accountId, urls) => urls.map((url) => linkIdOf(accountId, url)) },
    }),
    async unsubscribable(domain) {
      const { unsubscribe, unsubscribeOnBulk } = await settings.get(domain.id)
      if (unsubscribe) return 'all mail'
      const base = unsubscribeOnBulk ? await baseUrl(trackerParts, domain) : null
      return base?.startsWith('https:') ? 'bulk mail' : 'none'
    },
    tokens,
    pageTemplates,
    linkBase: (domain) => baseUrl(trackerParts, domain),
    operations: [
      ...trackingSettingsRoutes({ domains, tracking: settings, lists, pageTemplates }),
      ...visitRoutes({
        tokens,
        visits,
        unsubscriber,
        preferences: createPreferencePages({ settings, domains, lists, unsubscriber, clock }),
        urlOf: links.urlOf,
        async senderOf({ scope, listSid, domainId }) {
          if (scope === 'list' && listSid !== null) return (await lists.byId(listSid))?.address ?? null
          return (await domains.byId(domainId))?.name ?? null
        },
        async ownerOf({ accountId, domainId }) {
          const domain = await domains.byId(domainId)
          const { preferences } = await settings.get(domainId)
          const isOwn = domain?.accountId === accountId
          const template = isOwn ? (preferences.pageTemplate ?? null) : null
          return { accountId, domainName: isOwn ? domain.name : null, template }
        },
        pageTemplates,
        clock,
      }),
    ],
    jobs: [
      createJob({
        name: 'link-retention',
        everyMs: REMOVE_LINKS_EVERY_MS,
        scope: 'database',
        work: links.removeOld,
      }),
    ],
    addresses: unsubscribeAddresses({
      readToken: tokens.readUnsubscribeAddress,
      deliveries: known,
      async unsubscribe(from) {
        const { preferences } = await settings.get(from.domainId)
        const tags = topicTags(preferences, from.tags)
        return unsubscriber.unsubscribe({ ...from, tags }, null, 'mail')
      },
      log,
    }),
    domainDeleted: ({ id }) => settings.remove(id),
    accountDeleted: (accountId, signal) => removeRowsInPass(core, 'tracking_links', 'id', accountId, signal),
    async stop() {
      await visits.stop()
      geo.stop()
    },
  }
}
